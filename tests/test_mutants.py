"""scripts/mutants.py plants faults and runs the suite on each; here only: its table is in order."""

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from harness import FAMILY_MODES

ROOT = Path(__file__).parents[1]
TEN = {
    "drop_k_tail",
    "tf32_downgrade",
    "read_c_at_beta_0",
    "read_ab_at_alpha_0",
    "no_scaling_at_k_0",
    "write_into_gap",
    "ignore_stride",
    "flip_sign_of_tile",
    "zero_tile",
    "fp16_partials",
}


@pytest.fixture(scope="module")
def mutants():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts/mutants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.load()


def test_every_family_has_the_ten_mutants(mutants):
    counts = Counter(mutant.family for mutant in mutants)
    assert {m.name for m in mutants} == TEN
    assert set(counts) == set(FAMILY_MODES)
    assert set(counts.values()) == {len(TEN)}


def test_every_mutant_still_applies(mutants):
    """The sources moved on: then the table must follow, or its faults are no longer planted."""
    for mutant in mutants:
        for hunk in mutant.hunks:
            text = (ROOT / hunk.file).read_text()
            found = len(hunk.find(text))
            assert found == 1, f"{mutant.name} ({mutant.family}): {found} times in {hunk.file}"
            assert hunk.new != hunk.old
            assert not re.search(r"\bTODO\b", hunk.new)
