//! Discovery: what clients find out before they ask for objects.

use super::scene::{KUBEZAP, Scene, fields, text};

super::cases!("discovery":
    groups_list_the_kinds_of_kubezap,
    resources_carry_short_names_category_and_subresource,
    aggregated_discovery_is_given_to_those_who_ask,
    the_version_can_be_parsed,
    an_unknown_group_is_not_found,
    openapi_describes_the_kinds,
);

async fn groups_list_the_kinds_of_kubezap(scene: &Scene) {
    let groups = scene.get("/apis").await.expect(200);
    assert_eq!(groups["kind"], "APIGroupList");
    let group = groups["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|group| group["name"] == "automation.kubezap.io")
        .expect("the group is listed");
    assert_eq!(
        group["preferredVersion"]["groupVersion"],
        "automation.kubezap.io/v1alpha1"
    );
    let core = scene.get("/api").await.expect(200);
    assert_eq!(core["versions"][0], "v1");
}

async fn resources_carry_short_names_category_and_subresource(scene: &Scene) {
    let list = scene.get(KUBEZAP).await.expect(200);
    assert_eq!(list["kind"], "APIResourceList");
    assert_eq!(list["groupVersion"], "automation.kubezap.io/v1alpha1");
    let names = fields(&list["resources"], "name");
    for name in [
        "triggers",
        "flows",
        "flowruns",
        "integrations",
        "webhookgatewayconfigs",
        "flowruns/status",
    ] {
        assert!(
            names.iter().any(|one| one == name),
            "{name} is not in {names:?}"
        );
    }
    let runs = list["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|resource| resource["name"] == "flowruns")
        .expect("flowruns");
    assert_eq!(runs["kind"], "FlowRun");
    assert_eq!(runs["singularName"], "flowrun");
    assert_eq!(runs["shortNames"][0], "fr");
    assert_eq!(runs["categories"][0], "kubezap");
    assert_eq!(runs["namespaced"], true);
    for verb in [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ] {
        let verbs = runs["verbs"].as_array().expect("verbs");
        assert!(verbs.iter().any(|one| one == verb), "{verb}");
    }
}

async fn aggregated_discovery_is_given_to_those_who_ask(scene: &Scene) {
    let accept =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let answer = scene.get_as("/apis", accept).await;
    let content_type = answer.headers["content-type"]
        .to_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        content_type.contains("as=APIGroupDiscoveryList"),
        "{content_type}"
    );
    let list = answer.expect(200);
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    let group = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|item| item["metadata"]["name"] == "automation.kubezap.io")
        .expect("the group is listed");
    let resources = &group["versions"][0]["resources"];
    assert!(fields(resources, "resource").contains(&"flowruns".to_owned()));
    let core = scene.get_as("/api", accept).await.expect(200);
    let core = fields(&core["items"][0]["versions"][0]["resources"], "resource");
    for name in ["namespaces", "secrets", "configmaps", "events"] {
        assert!(core.contains(&name.to_owned()), "{name}");
    }
}

async fn the_version_can_be_parsed(scene: &Scene) {
    let version = scene.get("/version").await.expect(200);
    assert_eq!(version["major"], "1");
    let minor = text(&version["minor"]);
    assert!(
        minor
            .trim_end_matches('+')
            .parse::<u32>()
            .is_ok_and(|minor| minor >= 27),
        "{minor}"
    );
    assert!(text(&version["gitVersion"]).starts_with("v1."));
}

async fn an_unknown_group_is_not_found(scene: &Scene) {
    assert_eq!(scene.get("/apis/absent.kubezap.io/v1").await.code, 404);
    let unknown = scene.get(&scene.path("absents")).await;
    assert_eq!(unknown.code, 404);
}

async fn openapi_describes_the_kinds(scene: &Scene) {
    let index = scene.get("/openapi/v3").await.expect(200);
    let path = &index["paths"]["apis/automation.kubezap.io/v1alpha1"]["serverRelativeURL"];
    let document = scene.get(&text(path)).await.expect(200);
    let schemas = document["components"]["schemas"]
        .as_object()
        .expect("schemas");
    let flow = schemas
        .values()
        .find(|schema| {
            let id = &schema["x-kubernetes-group-version-kind"][0];
            id["kind"] == "Flow" && id["group"] == "automation.kubezap.io"
        })
        .expect("the schema of Flow");
    let steps = &flow["properties"]["spec"]["properties"]["steps"];
    assert_eq!(steps["type"], "array");
    assert!(!text(&steps["description"]).is_empty());
}
