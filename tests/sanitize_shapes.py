"""Small products of every GPU kernel, to be run under compute-sanitizer: `scripts/gpu sanitize`.

Ragged and whole tiles, each layout, padding, batches, alpha, beta, C, K = 0, packing, split-K.
Results are judged as in the tests. Prints the number of products; any fault ends it.
"""

import argparse
import os
import sys

import numpy as np
import tcgemm
from harness import (
    COL,
    FAMILY_MODES,
    INT8_SCALING_FAMILIES,
    MODES,
    ROW,
    Lab,
    Layout,
    data,
    families,
    round_to,
    scaled,
)

GPU_FAMILIES = [family for family in FAMILY_MODES if family != "host"]
SHAPES = ((1, 1, 1), (17, 9, 33), (64, 64, 64), (65, 129, 70), (130, 24, 31), (3, 257, 8))
LAYOUTS = (ROW, COL, Layout(pad=1, offset=1), Layout("col", pad=8), Layout(step=2))


def products(lab, mode, split_k):
    """Calls that run and check a product each. Kernels take some and refuse others."""
    rng = np.random.default_rng(1)

    def product(*args, **how):
        return lambda: lab.check(mode, *args, **how)

    for index, (m, n, k) in enumerate(SHAPES):
        a, b = data.integers(rng, mode, (m, k), (k, n))
        out = mode.outputs[index % len(mode.outputs)]
        c = round_to(rng.integers(-8, 8, (m, n)), out)
        layouts = {
            "a": LAYOUTS[index % 5],
            "b": LAYOUTS[(index + 1) % 5],
            "c": LAYOUTS[(index + 2) % 3],
            "out": LAYOUTS[(index + 3) % 3],
        }
        how = {"expect": "exact", "layouts": layouts}
        yield product(a, b, c, alpha=2, beta=-1, out_dtype=out, **how)
        yield product(a, b, **how)
        yield product(a[:, :0], b[:0], c, beta=2, out_dtype=out, **how)
    a, b = data.integers(rng, mode, (3, 1, 20, 15), (2, 15, 18))
    yield product(a, b, expect="exact", layouts={"a": Layout(batch_pad=5)})
    if split_k:
        for m, n, k in ((16, 24, 4096), (130, 72, 20480)):  # the latter in more than 16 parts
            yield product(*data.signed(rng, mode, (m, k), (k, n)))


def scaled_products(lab, split_k):
    """FP8 and int8 with scales of each kind, to each result."""
    rng = np.random.default_rng(2)
    fp8 = ("float8_e4m3fn", "float8_e5m2")
    modes = [(x, y, y, how, of_blocks) for x in fp8 for y in fp8 for how in ("promoted", "fast")
             for of_blocks in ("a", "ab", "columns", "")]  # fmt: skip
    for of_a, of_b, out, accumulate, of_blocks in (*modes, ("int8", "int8", "float16", None, "")):
        long_k = ((5, 60, 8200),) if split_k else ()
        for index, (m, n, k) in enumerate((*SHAPES, (65, 70, 300), (130, 200, 700), *long_k)):
            a = round_to(rng.integers(-4, 4, (m, k)), of_a)
            b = round_to(rng.integers(-4, 4, (k, n)), of_b)
            c = round_to(rng.integers(-8, 8, (m, n)), out)
            blocks = -(-k // 128) if of_blocks else 1
            shape_b = {"ab": (blocks, -(-n // 128)), "columns": (blocks, n)}.get(of_blocks, (1, n))
            scales = {
                "scale_a": rng.uniform(0.5, 2, (m, blocks)).astype(np.float32),
                "scale_b": rng.uniform(0.5, 2, shape_b).astype(np.float32),
                "scale_d": np.full((1, 1), 0.125, np.float32),
            }
            layouts = {"a": LAYOUTS[index % 5], "b": LAYOUTS[(index + 1) % 5]}
            how = {"out_dtype": out, "scales": scales, "layouts": layouts, "accumulate": accumulate}
            try:
                used, _ = scaled.run(lab, a, b, **how)
            except tcgemm.NoKernelError:
                continue  # the kernel is for others
            scaled.check(lab, a, b, c=c, alpha=2, beta=-1, **how)
            yield used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--families", nargs="+", default=GPU_FAMILIES)
    parser.add_argument(
        "--no-split-k",
        action="store_true",
        help="for initcheck: sm90_wgmma waits for flags that nobody has written yet",
    )
    args = parser.parse_args()
    count, kernels = 0, set()
    for family in args.families:
        if family not in families.runnable():
            print(f"{family}: this machine cannot run it", file=sys.stderr)
            return 1
        os.environ["TCGEMM_FORCE_FAMILY"] = family
        for kernel in tcgemm.kernels():
            if kernel["family"] != family:
                continue
            os.environ["TCGEMM_FORCE_KERNEL"] = kernel["name"]
            for name in FAMILY_MODES[family]:
                for product in products(Lab(tcgemm, family), MODES[name], not args.no_split_k):
                    try:
                        kernels.add(product().kernel)
                    except tcgemm.NoKernelError:
                        continue  # the kernel is for others
                    count += 1
            if family in INT8_SCALING_FAMILIES:
                for used in scaled_products(Lab(tcgemm, family), not args.no_split_k):
                    count += 1
                    kernels.add(used)
            assert kernel["name"] in kernels, f"{kernel['name']} ran no product"
        del os.environ["TCGEMM_FORCE_KERNEL"]
    print(f"{count} products right, kernels: {' '.join(sorted(kernels))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
