"""The scripts of the planning page, run by the Node that Playwright brings along."""

import json
import subprocess
from importlib.resources import files

from playwright._impl._driver import compute_driver_executable


def run(names, code, given):
    """What a piece of JavaScript returns that follows some scripts of the page and sees `given`."""
    own = "".join(
        files("hedgerow.plan.page").joinpath(name).read_text(encoding="utf-8") for name in names
    )
    node = compute_driver_executable()[0]
    whole = (
        f'"use strict";\n{own}\nconst given = JSON.parse(require("fs").readFileSync(0, "utf8"));\n'
        f"const answer = (() => {{ {code} }})();\nprocess.stdout.write(JSON.stringify(answer));"
    )
    done = subprocess.run(
        [node, "-e", whole], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
