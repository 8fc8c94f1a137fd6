//! The binary killed at each of its steps: an output implies its manifest, and the next export says what it swept.

use std::fs;

use serde_json::Value;
use thought_authority::export::EXPORT_POINTS;
use thought_protocol::Sha256Hex;

use crate::scene::{Scene, says};

const CRASH_POINT: &str = "THOUGHT_TEST_CRASH_POINT";

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_each_step_nothing_half_stays_in_place() {
    let mut scene = Scene::start().await;
    scene.world.model.script(vec![says("It is Monday.")]);
    let serve = scene.world.serve();
    scene.world.turn("What day is it?", 1).await;
    scene.correct("It is Tuesday.", 1);
    serve.stop();
    scene.private("whole").exit(0);
    for (index, point) in EXPORT_POINTS.into_iter().enumerate() {
        let name = format!("{index}.jsonl");
        scene.world.home.env(CRASH_POINT, point);
        assert_eq!(scene.private(&name).code, None, "{point}");
        scene.world.home.unset(CRASH_POINT);
        let left: Vec<String> = scene.names().into_iter().filter(|found| found.contains(&name)).collect();
        if scene.at(&name).exists() {
            let manifest: Value =
                serde_json::from_str(&scene.text(&format!("{name}.manifest.json"))).unwrap();
            let sha256 = Sha256Hex::of(&fs::read(scene.at(&name)).unwrap());
            assert_eq!(manifest["output"]["sha256"], sha256.as_str(), "{point}");
            assert_eq!(left.len(), 2, "{point}");
        } else {
            let report = scene.private(&name).exit(0).object();
            let mut swept: Vec<&str> =
                report["swept"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            swept.sort_unstable();
            assert_eq!(swept, left, "{point}");
        }
        assert_eq!(scene.text(&name), scene.text("whole"), "{point}");
    }
    assert!(scene.names().iter().all(|name| !name.starts_with('.')), "{:?}", scene.names());
}
