"""Random products, out of everything at once: sizes, layouts, batches, scalars, output dtypes."""

import numpy as np
from harness import Layout, data, round_to
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# Most of the first kind can be read where they lie, of the second most must be packed.
REGULAR = st.builds(
    Layout,
    order=st.sampled_from(["row", "col"]),
    align=st.sampled_from([8, 16, 64]),
    pad=st.sampled_from([0, 0, 16]),
    offset=st.sampled_from([0, 0, 16, 8]),
    outer_batch_pad=st.sampled_from([0, 64]),
)
IRREGULAR = st.builds(
    Layout,
    order=st.sampled_from(["row", "col"]),
    pad=st.integers(0, 9),
    step=st.sampled_from([1, 1, 1, 2, 3]),
    offset=st.integers(0, 15),
    reverse_rows=st.booleans(),
    reverse_cols=st.booleans(),
    batch_pad=st.integers(0, 5),
    outer_batch_pad=st.integers(0, 5),
    size_one_stride=st.sampled_from([None, None, 0, 7, 10**10]),
)
LAYOUTS = st.one_of(REGULAR, IRREGULAR)
SIZES = st.one_of(
    st.integers(1, 40),
    st.sampled_from([63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 320, 384, 385, 513]),
)
SCALARS = st.integers(-3, 3)


@st.composite
def batches(draw):
    """Two shapes that broadcast together."""
    full = draw(st.lists(st.integers(1, 3), max_size=3))
    sides = []
    for _ in range(2):
        kept = [size if draw(st.booleans()) else 1 for size in full]
        sides.append(tuple(kept[draw(st.integers(0, len(kept))) :]))
    return sides


@settings(
    max_examples=80,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=st.data())
def test_random_problem_is_exact(lab, mode, drawn):
    m, n, k = (drawn.draw(SIZES, label=name) for name in "mnk")
    k = drawn.draw(st.sampled_from([k, k, k, 0]), label="k, or none")
    batch_a, batch_b = drawn.draw(batches(), label="batches")
    layouts = {name: drawn.draw(LAYOUTS, label=name) for name in ("a", "b", "c", "out")}
    alpha, beta = drawn.draw(SCALARS, label="alpha"), drawn.draw(SCALARS, label="beta")
    out = drawn.draw(st.sampled_from(mode.outputs), label="output dtype")
    rng = np.random.default_rng(m + 1000 * n)
    a, b = data.integers(rng, mode, (*batch_a, m, k), (*batch_b, k, n))
    c = None
    if beta or drawn.draw(st.booleans(), label="a C that is not read"):
        shape = (*np.broadcast_shapes(batch_a, batch_b), m, n)
        c = round_to(rng.integers(-8, 8, shape), out)
    lab.check(
        mode,
        a,
        b,
        c,
        alpha=alpha,
        beta=beta,
        out_dtype=out,
        layouts=layouts,
        trans_a=drawn.draw(st.booleans(), label="trans_a"),
        trans_b=drawn.draw(st.booleans(), label="trans_b"),
        expect="exact",
    )
