"""scripts/main_loops.py finds the loop that multiplies, knows how many blocks an SM holds, and
tells when either has become worse."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "main_loops.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests are not in the repository")

SASS = """
Fatbin elf code:
arch = sm_80
                Function : kernel
        /*0000*/                   LDGSTS.E [R1], [R2.64] ;
        /*0010*/              @!P1 BRA 0x0010 ;
        /*0020*/                   LDSM.16.M88.4 R4, [R3] ;
        /*0030*/                   HMMA.16816.F32 R8, R4, R6, R8 ;
        /*0040*/               @P0 BRA 0x20 ;
        /*0050*/                   HMMA.16816.F32 R8, R4, R6, R8 ;
        /*0060*/               @P2 BRA 0x0 ;
        /*0070*/                   FFMA R1, R2, R3, R4 ;
        /*0080*/              @!P0 BRA 0x70 ;
        /*0090*/                   EXIT ;
"""


@pytest.fixture(scope="module")
def main_loops():
    sys.path.insert(0, str(SCRIPT.parent))  # it takes functions of the script beside it
    spec = importlib.util.spec_from_file_location("main_loops", SCRIPT)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_innermost_loop_on_tensor_cores_is_found(main_loops):
    functions = main_loops.read_functions(SASS)
    assert list(functions) == [("kernel", "80")]
    loop = main_loops.main_loop(functions["kernel", "80"])
    assert [i.name for i in loop] == ["LDSM.16.M88.4", "HMMA.16816.F32", "BRA"]


def test_code_without_multiplications_has_no_main_loop(main_loops):
    text = SASS.replace("HMMA", "IADD3").replace("FFMA", "IADD3")
    assert main_loops.main_loop(main_loops.read_functions(text)["kernel", "80"]) == []


@pytest.mark.parametrize(("operands", "found"), [("-RZ, RZ, 0, 3.8e-06", 0), ("R4, R6, R8", 1)])
def test_a_constant_that_is_added_to_0_is_no_multiplication(main_loops, operands, found):
    text = SASS.replace("FFMA", "IADD3").replace(
        "HMMA.16816.F32 R8, R4, R6, R8", f"HFMA2 R8, {operands}"
    )
    (body,) = main_loops.read_functions(text).values()
    assert bool(main_loops.main_loop(body)) == found


@pytest.mark.parametrize(
    ("ffmas", "reads"),
    [
        (["R1, R2, R3, R4"], 2),  # 2 and 4 of one bank
        (["R1, R2, R3, RZ"], 1),
        (["R1, R2, R4, c[0x0][0x160]", "R1, -R2, R3, R1"], 1.5),
        (["R1, R2.reuse, R3, R5", "R7, R2, R4, R9"], 1.5),  # 3, 5 and 9
        (["R1, R2.reuse, R3, R5", "R7, R4, R2, R9"], 1.5),  # in another place: read again
        (["R1, R2.reuse, R3, R4", "R1, R2.reuse, R5, R6", "R1, R2, R7, R8"], 4 / 3),
    ],
)
def test_what_ffmas_read_of_a_bank(main_loops, ffmas, reads):
    text = SASS.replace("FFMA R1, R2, R3, R4 ;", "FFMA " + " ;\n/*0074*/ FFMA ".join(ffmas) + " ;")
    (body,) = main_loops.read_functions(text).values()
    assert main_loops.bank_reads(body) == pytest.approx(reads)


def test_a_loop_without_ffmas_reads_no_bank(main_loops):
    (body,) = main_loops.read_functions(SASS.replace("FFMA", "DFMA")).values()
    assert main_loops.bank_reads(body) == 0


ELF = """
arch = sm_80
.nv.info.kernel
	<0x1>
	Attribute:	EIATTR_MAX_THREADS
	Format:	EIFMT_SVAL
	Value:	0x80 0x2 0x1
"""


def test_the_threads_of_a_block_are_found(main_loops):
    assert main_loops.read_threads(ELF) == {("kernel", "80"): 256}


# By hand from the tables of the CUDA programming guide.
@pytest.mark.parametrize(
    ("sm", "threads", "registers", "shared_bytes", "blocks"),
    [
        ("70", 128, 244, 41000, 2),  # 82,000 of 98,304 bytes, 2 x 4 warps x 7,936 registers
        ("75", 128, 234, 41000, 1),  # 65,536 bytes
        ("75", 128, 106, 20496, 3),
        ("75", 256, 32, 0, 4),  # 32 warps
        ("75", 32, 32, 0, 16),  # blocks
        ("80", 256, 128, 0, 2),  # 65,536 registers
        ("80", 128, 168, 0, 3),  # 12 warps of 5,376 registers
        ("86", 128, 64, 49 << 10, 2),  # with 1 KB reserved for each: 100 KB
        ("86", 128, 64, (49 << 10) + 1, 1),
        ("89", 64, 32, 0, 24),
        ("90", 384, 168, 227 << 10, 1),
    ],
)
def test_the_blocks_that_an_sm_holds(main_loops, sm, threads, registers, shared_bytes, blocks):
    resident = main_loops.MULTIPROCESSORS[sm].resident_blocks(threads, registers, shared_bytes)
    assert resident == blocks


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, ""),
        ({"instructions": "104"}, ""),
        ({"instructions": "90"}, ""),
        ({"instructions": "110"}, "instructions for a multiplication"),
        ({"registers": "130"}, "registers"),
        ({"tensor": "0", "fma": "8"}, "no tensor-core instruction"),
        ({"occupancy": "0.125"}, "occupancy 0.125, before 0.250"),
        ({"occupancy": "0.375"}, ""),
        ({"bank_reads": "1.10"}, ""),
        ({"bank_reads": "1.20"}, "1.20 reads of a bank for an FFMA, before 1.08"),
    ],
)
def test_what_has_become_worse(main_loops, change, told):
    before = {"registers": "120", "occupancy": "0.250", "instructions": "100"}
    before |= {"tensor": "8", "fma": "0", "bank_reads": "1.08"}
    said = main_loops.worse({**before, **change}, before)
    assert told in said if told else not said
