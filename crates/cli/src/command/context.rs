//! `context-show`: what a run was given.

use serde_json::{Value, json};
use thought_contract::review::visible;
use thought_contract::snapshot::Snapshot;
use thought_protocol::packet::Packet;
use thought_store::Images;
use thought_store::handle::Reader;

use super::runs::find;
use crate::exit::{Exit, Failure, chain};
use crate::print::{Consent, Content, Printer};

/// `context-show`.
///
/// # Errors
/// [`Failure`]: no such run, or a run without a snapshot (5); a snapshot that does not rebuild (1).
pub async fn show(
    (reader, images): (&Reader, &dyn Images),
    printer: Printer,
    run: &str,
    consent: Consent,
) -> Result<(), Failure> {
    let run = find(reader, run).await?;
    let Some(row) = reader.snapshot(run.id.clone()).await? else {
        let message = format!("run {} has no snapshot", run.id);
        return Err(Failure::new(Exit::NotFound, "no-snapshot", message).hint(
            "a run gets its snapshot when its first attempt begins; thought run-show tells why it waits",
        ));
    };
    let (snapshot, packet) = thought_runtime::context::rebuild(reader, images, &run.id)
        .await
        .map_err(|error| Failure::new(Exit::Internal, "snapshot", chain(&error)))?;
    let manifest = manifest(&snapshot)?;
    let mut value = json!({
        "run": run.id, "snapshot": row.id, "sha256": row.sha256, "packetSha256": row.packet_sha256,
        "storedBytes": row.bytes.expose().len(), "manifest": manifest,
    });
    let content = printer.content(consent, "the packet");
    if content == Content::Shown {
        value["packet"] = packet_json(&packet)?;
    }
    printer.either(&value, || {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let mut lines = vec![
            format!("snapshot  {}", printer.bold(row.id.as_str())),
            format!("run       {}", run.id),
            format!("sha256    {}, {} bytes stored", row.sha256, row.bytes.expose().len()),
            format!("packet    sha256 {} (rebuilt and equal)", row.packet_sha256),
            pretty(&manifest),
        ];
        if content == Content::Shown {
            lines.push(visible(&pretty(&value["packet"])));
        } else {
            let remark = "the packet is private; --acknowledge-sensitive-private prints it";
            lines.push(printer.dim(remark));
        }
        lines
    })
}

fn manifest(snapshot: &Snapshot) -> Result<Value, Failure> {
    serde_json::to_value(snapshot).map_err(|error| Failure::internal(&error))
}

fn packet_json(packet: &Packet) -> Result<Value, Failure> {
    serde_json::to_value(packet).map_err(|error| Failure::internal(&error))
}
