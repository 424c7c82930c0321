"""Chains of products drawn at random, each with a forced kernel, accumulated in place.

They find what depends on a combination that no test chose: of tile, layout, split, store, batch,
what ran before and what else runs. For races let several processes share the GPU:

    TCGEMM_TEST_CHAINS=100 python -m pytest --thorough tests/test_chains.py -n 12
"""

import functools
import math
import os

import pytest
import tcgemm
from frameworks import Place
from harness import chains, cuda

TRIALS = 12  # of a test
SEEDS = range(24 * int(os.environ.get("TCGEMM_TEST_CHAINS", "1")) * TRIALS)
ALONE = os.environ.get("TCGEMM_TEST_CHAIN")  # the seed of one trial

kernels_for = functools.cache(chains.kernels_for)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")  # of a product of nothing
@pytest.mark.parametrize("first", [int(ALONE)] if ALONE else SEEDS[::TRIALS])
def test_random_chains_are_exact(first, monkeypatch):
    torch = Place("torch", "cuda").module
    from harness import trials

    monkeypatch.delenv("TCGEMM_FORCE_FAMILY", raising=False)
    monkeypatch.setenv("TCGEMM_FORCE_KERNEL", "")  # is changed, and restored afterwards
    for seed in range(first, first + (1 if ALONE else TRIALS)):
        drawn = chains.draw(seed, kernels_for(cuda.compute_capability()), cuda.sm_count())
        try:
            trials.attempt(drawn, seed)
        except Exception as error:
            if not isinstance(error, MemoryError) and "out of memory" not in str(error):
                told = "\n".join(map(repr, drawn))
                error.add_note(f"TCGEMM_TEST_CHAIN={seed} runs this trial alone:\n{told}")
                raise
    torch.cuda.empty_cache()


@pytest.mark.skipif(not tcgemm.build_info()["cuda_version"], reason="a build without CUDA")
def test_chains_are_drawn_within_their_limits():
    kernels, sms, used = kernels_for((9, 0)), 7, set()
    for seed in range(300):
        drawn = chains.draw(seed, kernels, sms)
        assert drawn == chains.draw(seed, kernels, sms)
        for chain in drawn:
            assert math.prod(chain.out.shape) <= chains.MOST_RESULTS * sms
            for product in chain.products:
                used.add(product.kernel)
                for operand in product.operands:
                    assert math.prod(operand.shape) <= chains.MOST_ELEMENTS * sms
    assert len(used) > 0.9 * len(kernels)
