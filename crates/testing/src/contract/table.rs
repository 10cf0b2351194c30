//! Tables, as kubectl prints them.

use serde_json::{Value, json};

use super::scene::{Scene, fields, flow, run, text};

super::cases!("tables":
    a_table_has_the_columns_of_the_kind,
    cells_show_what_the_columns_point_to,
    rows_carry_metadata_unless_told_otherwise,
    one_object_is_a_table_of_one_row,
    a_watch_sends_columns_once,
    built_in_kinds_have_their_columns,
);

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async fn a_table_has_the_columns_of_the_kind(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let table = scene
        .get_as(&scene.path("flowruns"), TABLE)
        .await
        .expect(200);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    let names = fields(&table["columnDefinitions"], "name");
    assert_eq!(names[..5], ["Name", "FLOW", "PHASE", "AGE", "DURATION"]);
    let columns = table["columnDefinitions"].as_array().expect("columns");
    assert!(
        columns[5..].iter().all(|column| column["priority"] == 1),
        "the rest is for -o wide"
    );
}

async fn cells_show_what_the_columns_point_to(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let patch = json!({"status": {"phase": "Running"}});
    let path = scene.path("flowruns/one/status");
    scene.patch(&path, "merge-patch", patch).await.expect(200);
    let table = scene
        .get_as(&scene.path("flowruns"), TABLE)
        .await
        .expect(200);
    let cells = &table["rows"][0]["cells"];
    assert_eq!(cells[0], "one");
    assert_eq!(cells[1], "some-flow");
    assert_eq!(cells[2], "Running");
    assert!(text(&cells[3]).ends_with('s'), "an age such as 3s: {cells}");
    assert_eq!(cells[4], Value::Null, "nothing there yet");
}

async fn rows_carry_metadata_unless_told_otherwise(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let table = scene.get_as(&scene.path("flows"), TABLE).await.expect(200);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "one");
    let path = scene.path("flows?includeObject=Object");
    let table = scene.get_as(&path, TABLE).await.expect(200);
    assert_eq!(table["rows"][0]["object"]["kind"], "Flow");
    let path = scene.path("flows?includeObject=None");
    let table = scene.get_as(&path, TABLE).await.expect(200);
    assert!(table["rows"][0]["object"].is_null());
}

async fn one_object_is_a_table_of_one_row(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    scene.create("flows", flow("two")).await;
    let table = scene
        .get_as(&scene.path("flows/one"), TABLE)
        .await
        .expect(200);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(table["rows"][0]["cells"][0], "one");
}

async fn a_watch_sends_columns_once(scene: &Scene) {
    scene.create("flows", flow("a")).await;
    scene.create("flows", flow("b")).await;
    let mut events = scene.watch_as(&scene.path("flows?watch=true"), TABLE).await;
    let first = events.next().await;
    assert_eq!(first["object"]["kind"], "Table");
    assert!(first["object"]["columnDefinitions"].is_array());
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    let second = events.next().await;
    assert!(second["object"]["columnDefinitions"].is_null());
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}

async fn built_in_kinds_have_their_columns(scene: &Scene) {
    let secret = json!({"metadata": {"name": "one"}, "stringData": {"a": "1", "b": "2"}});
    scene.post(&scene.core("secrets"), secret).await.expect(201);
    let table = scene
        .get_as(&scene.core("secrets"), TABLE)
        .await
        .expect(200);
    let names = fields(&table["columnDefinitions"], "name");
    assert_eq!(names, ["Name", "Type", "Data", "Age"]);
    let rows = table["rows"].as_array().into_iter().flatten();
    let mut cells = rows
        .map(|row| &row["cells"])
        .filter(|cells| cells[0] == "one");
    let cells = cells.next().expect("the secret's row");
    assert_eq!(cells[1], "Opaque");
    assert_eq!(cells[2], 2);
}
