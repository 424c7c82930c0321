"""Scripts in a fresh interpreter, which finds what the tests find."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def ended(script: str, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess:
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def python(script: str, timeout: float = 300, **environment: str) -> str:
    """What the script prints; it has to succeed."""
    done = ended(script, timeout, **environment)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
