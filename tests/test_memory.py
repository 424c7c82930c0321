"""GPU memory that runs out: what frameworks keep for later is asked for first."""

import pytest
from frameworks import Place
from test_processes import python

pytestmark = pytest.mark.gpu

LEFT = 24 << 20  # bytes, less than the operands that are packed take


@pytest.mark.parametrize("call", ["matmul", "plan", "host"])
def test_memory_that_torch_keeps_is_used(call):
    Place("torch", "cuda")  # or skipped
    python(
        """
    import numpy as np, torch, tcgemm
    call, left = CALL, LEFT
    n = 4095
    a = torch.ones(n, n, device="cuda", dtype=torch.float16)
    out = torch.empty(n, n, device="cuda", dtype=torch.float16)
    small = np.ones((33, 33), np.float32)
    tcgemm.matmul(small, small), tcgemm.matmul(a[:33, :33], a[:33, :33])
    torch.cuda.synchronize()
    kept = torch.empty(torch.cuda.mem_get_info()[0] - left, dtype=torch.uint8, device="cuda")
    del kept
    assert torch.cuda.mem_get_info()[0] < 2 * left
    if call == "matmul":
        tcgemm.matmul(a, a, out=out)
    elif call == "plan":
        tcgemm.plan(a, a, out=out).execute()
    else:
        host = np.ones((n, n), np.float16)
        assert (tcgemm.matmul(host, host) == n).all()
        out.fill_(n)
    assert bool((out == n).all())
    """.replace("CALL", repr(call)).replace("LEFT", str(LEFT))
    )
