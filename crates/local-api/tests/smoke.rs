//! The API by its own client, in the process.

use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use kubezap_api::Flow;
use kubezap_local_api::{LocalApi, Options};

fn flow(name: &str) -> Flow {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "automation.kubezap.io/v1alpha1", "kind": "Flow", "metadata": {"name": name},
        "spec": {"steps": [{"name": "a", "action": {"type": "wait", "wait": {"duration": "1s"}}}]},
    }))
    .unwrap()
}

#[tokio::test]
async fn an_object_is_created_listed_updated_and_deleted() {
    let client = LocalApi::new(Options::new(kubezap_api::crds())).client("default");
    let flows = Api::<Flow>::default_namespaced(client);
    let mut created = flows
        .create(&PostParams::default(), &flow("one"))
        .await
        .unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    assert_eq!(
        flows
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    created.spec.description = Some("changed".to_owned());
    let updated = flows
        .replace("one", &PostParams::default(), &created)
        .await
        .unwrap();
    assert_eq!(updated.metadata.generation, Some(2));
    let stale = flows.replace("one", &PostParams::default(), &created).await;
    assert!(matches!(stale, Err(kube::Error::Api(status)) if status.code == 409));
    flows.delete("one", &Default::default()).await.unwrap();
    assert!(flows.get_opt("one").await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_shows_what_happens_and_what_enters_the_selection() {
    use futures::{StreamExt, TryStreamExt};
    let client = LocalApi::new(Options::new(kubezap_api::crds())).client("default");
    let flows = Api::<Flow>::default_namespaced(client);
    let mut watch = kube::runtime::watcher(flows.clone(), Default::default()).boxed();
    flows
        .create(&PostParams::default(), &flow("one"))
        .await
        .unwrap();
    loop {
        let event = tokio::time::timeout(std::time::Duration::from_secs(5), watch.try_next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        if let kube::runtime::watcher::Event::Apply(object)
        | kube::runtime::watcher::Event::InitApply(object) = event
        {
            assert_eq!(object.name_any(), "one");
            break;
        }
    }
}
