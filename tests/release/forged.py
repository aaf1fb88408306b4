"""Files of a release that somebody changed, under a manifest whose digests fit."""

import hashlib
import json


def reseal(folder, change=None):
    """Let the manifest name the digests of what its files and its plan now are, once changed."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    if change is not None:
        change(manifest)
    there = (name for name in manifest["files"] if (folder / name).exists())
    manifest["files"] = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in there
    }
    plan = json.dumps(manifest["plan"], sort_keys=True, separators=(",", ":"))
    manifest["plan_sha256"] = hashlib.sha256(plan.encode()).hexdigest()
    path.write_text(json.dumps(manifest))
