"""The module answers as the crate does, and says what is wrong with what it is given."""

import math
import pathlib
import re
import threading
from typing import TypedDict

import pytest

import fusion_cost_model as fcm


class Attention(TypedDict):
    b: int
    h: int
    q: int
    d: int


FILE = pathlib.Path(__file__).parents[3] / "tests" / "data" / "example.toml"
STATE = """
[[state]]
id = 1
handoff_us = 0.5
triad_gb_per_s = 55.0
triad_range = [50.0, 60.0]
processes = 5
"""
MEASURED = "add_relu/f32/m4096.n1024"
BETWEEN = "linear_bias_relu/f32/m1024.k300.n400"
UNKNOWN = "tanh+mul/f64/m3.n5"
CONSERVATIVE = fcm.Policy("conservative")


@pytest.fixture(scope="module")
def on_cpu() -> fcm.OnTarget:
    return fcm.FusionCostModel.load(FILE).on(fcm.Target("cpu", threads=2))


def record(text: str, key: str) -> float:
    """A number of a record in the file."""
    _, of_problem = FILE.read_text().split(f'[[fusion]]\nproblem = "{text}"\n')
    found = re.search(rf"^{key} = ([0-9.e-]+)$", of_problem, re.MULTILINE)
    assert found
    return float(found[1])


def test_a_model_has_targets() -> None:
    model = fcm.FusionCostModel.load(str(FILE), expecting_hardware="intel-xeon-processor")
    assert model.targets == [fcm.Target("cpu", threads=2)]
    assert fcm.FusionCostModel.from_text(FILE.read_text()).targets == model.targets
    assert re.fullmatch(r"<FusionCostModel of .* with \d+ records>", repr(model))


def test_what_was_measured_comes_back(on_cpu: fcm.OnTarget) -> None:
    estimate = on_cpu.estimate(fcm.Problem(MEASURED))
    assert estimate.evidence == "measured"
    assert estimate.speedup and estimate.fused_ms and estimate.unfused_ms
    assert estimate.speedup.value == record(MEASURED, "speedup_factor")
    assert estimate.fused_ms.value == record(MEASURED, "fused_latency_ms")
    assert estimate.unfused_ms.value == record(MEASURED, "unfused_latency_ms")
    assert estimate.nearest == [fcm.Problem(MEASURED)]
    assert estimate.octaves_beyond == 0


def test_other_sizes_have_intervals(on_cpu: fcm.OnTarget) -> None:
    estimate = on_cpu.estimate(fcm.Problem(BETWEEN))
    assert estimate.evidence == "interpolated"
    assert estimate.speedup
    assert estimate.speedup.low < estimate.speedup.value < estimate.speedup.high
    assert estimate.nearest
    assert estimate == on_cpu.estimate(fcm.Problem(BETWEEN))


def test_nothing_is_known_about_some(on_cpu: fcm.OnTarget) -> None:
    estimate = on_cpu.estimate(fcm.Problem(UNKNOWN))
    assert estimate.evidence == "unknown"
    assert estimate.speedup is None and estimate.fused_ms is None
    assert repr(estimate) == '<Estimate evidence="unknown" speedup=None>'
    elsewhere = fcm.FusionCostModel.load(FILE).on(fcm.Target("cpu", threads=64))
    assert elsewhere.estimate(fcm.Problem(MEASURED)).evidence == "unknown"


def test_decisions_follow_the_policy(on_cpu: fcm.OnTarget) -> None:
    decision = on_cpu.decide(fcm.Problem(MEASURED), CONSERVATIVE)
    assert decision.should_fuse and decision.reason == "faster"
    picky = fcm.Policy("conservative", threshold=9.0)
    assert on_cpu.decide(fcm.Problem(MEASURED), picky).reason == "slower"
    assert on_cpu.decide(fcm.Problem(UNKNOWN), fcm.Policy("optimistic")).should_fuse
    assert on_cpu.decide(fcm.Problem(UNKNOWN), CONSERVATIVE).reason == "unknown"
    with pytest.raises(fcm.UndecidedError, match="nothing was measured for tanh"):
        on_cpu.decide(fcm.Problem(UNKNOWN), fcm.Policy("error"))
    add, relu = (fcm.Problem.rows(op, "f32", m=4096, n=1024) for op in ("add", "relu"))
    assert add.join(relu) == fcm.Problem(MEASURED)
    assert on_cpu.should_fuse(add, relu, CONSERVATIVE)


def test_a_chain_is_split(on_cpu: fcm.OnTarget) -> None:
    chain = fcm.Problem("linear_bias_relu/f32/m4096.k64.n256")
    best = on_cpu.partition(chain, CONSERVATIVE)
    [segment] = best.segments
    assert segment.problem == chain
    assert [(part.node, part.begin, part.end) for part in segment.parts] == [(0, 0, 3)]
    assert best.total_ms and best.total_ms.value == record(str(chain), "fused_latency_ms")
    assert best.never.segments[2][0].begin == 2
    assert best.never.slower_by_ms == best.saved_ms
    assert best.always.slower_by_ms.value == 0
    assert best.runner_up is not None and best.peak_bytes > 0


def test_a_node_that_is_read_twice_ends_a_segment(on_cpu: fcm.OnTarget) -> None:
    linear = fcm.Problem("linear/f32/m4096.k64.n256")
    tail, add = fcm.Problem("bias+relu/f32/m4096.n256"), fcm.Problem("add/f32/m4096.n256")
    nodes = [fcm.GraphNode(linear), fcm.GraphNode(tail, input=0)]
    whole = on_cpu.partition_graph(nodes, CONSERVATIVE)
    assert [str(segment.problem) for segment in whole.segments] == [
        "linear_bias_relu/f32/m4096.k64.n256"
    ]
    nodes.append(fcm.GraphNode(add, input=1, operands=[0]))
    apart = on_cpu.partition_graph(nodes, CONSERVATIVE)
    assert apart.segments[0].problem == linear
    nodes[0] = fcm.GraphNode(linear, is_output=True)
    assert on_cpu.partition_graph(nodes[:2], CONSERVATIVE).segments[0].problem == linear
    assert on_cpu.partition_graph([], CONSERVATIVE).segments == []


def test_coverage_says_what_to_measure(on_cpu: fcm.OnTarget) -> None:
    unmeasured = "sigmoid_mul/f32/m4096.n1024"
    problems = [fcm.Problem(text) for text in (MEASURED, unmeasured, MEASURED)]
    coverage = on_cpu.coverage(problems, CONSERVATIVE)
    measured, other = coverage.questions
    assert (measured.problem, measured.count) == (fcm.Problem(MEASURED), 2)
    assert measured.is_safe and not other.is_safe
    assert measured.estimate == on_cpu.estimate(measured.problem)
    assert other.expected_regret_ms is not None and other.expected_regret_ms > 0
    unknown = on_cpu.coverage([fcm.Problem(UNKNOWN)], CONSERVATIVE).questions[0]
    assert unknown.expected_regret_ms is None and not unknown.is_safe
    assert (coverage.known, coverage.decisions, coverage.safe_decisions) == (1, 2, 1)
    expected = sum(covered.expected_regret_ms or 0.0 for covered in coverage.questions)
    assert coverage.expected_regret_ms == pytest.approx(expected)
    (point,) = coverage.to_measure
    assert point.problem == fcm.Problem(unmeasured) and point.lowers_regret_by_ms > 0
    assert repr(coverage) == "<Coverage of 2 problems: 1 of 2 decisions safe, 1 to measure>"
    assert on_cpu.coverage([], CONSERVATIVE).questions == []


def test_problems_from_numbers_are_those_of_the_text() -> None:
    attention: Attention = {"b": 1, "h": 8, "q": 512, "d": 64}
    conv = {"n": 1, "c": 64, "h": 56, "w": 56, "k": 32, "r": 3, "s": 3}
    for problem, text in [
        (fcm.Problem.rows("Add_ReLU", "torch.bfloat16", m=1, n=2), "add_relu/bf16/m1.n2"),
        (fcm.Problem.linear("nn.Linear+relu", "f32", m=1, k=2, n=3), "linear+relu/f32/m1.k2.n3"),
        (fcm.Problem.mlp("mlp", "f32", m=1, k=2, n=3, o=4), "mlp/f32/m1.k2.n3.o4"),
        (
            fcm.Problem.conv("conv_bn", "f32", **conv, stride=2, pad=1, groups=4),
            "conv_bn/f32/n1.c64.h56.w56.k32.r3.s3.stride2.pad1.groups4",
        ),
        (
            fcm.Problem.conv_pool("conv_bn_relu_maxpool", "f32", **conv, pool=3),
            "conv_bn_relu_maxpool/f32/n1.c64.h56.w56.k32.r3.s3.pool3",
        ),
        (
            fcm.Problem.attention("attention_head", "f32", **attention, kv=128),
            "attention_head/f32/b1.h8.q512.kv128.d64",
        ),
        (
            fcm.Problem.attention("attention_head", "f32", **attention, kvh=2, causal=True),
            "attention_head/f32/b1.h8.q512.d64.kvh2.causal1",
        ),
        (
            fcm.Problem.multihead_linear("multihead_linear", "f32", **attention, features=7),
            "multihead_linear/f32/b1.h8.q512.d64.n7",
        ),
    ]:
        assert str(problem) == text
        assert problem == fcm.Problem(text) and hash(problem) == hash(fcm.Problem(text))
        assert repr(problem) == f'Problem("{text}")'
    problem = fcm.Problem("linear_bias/f16/m1.k2.n3")
    assert (problem.ops, problem.dtype) == (["linear", "bias"], "f16")
    assert problem.sizes == {"m": 1, "k": 2, "n": 3}


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("linear_bais/f32/m1.k2.n3", fcm.UnknownNameError, "did you mean `linear_bias`"),
        ("linear/f23/m1.k2.n3", fcm.UnknownNameError, "unknown dtype `f23`"),
        ("relu+linear/f32/m1.k2.n3", fcm.NotOneKernelError, "linear must be the first op"),
        ("linear/f32/m1.k2", fcm.InvalidSizesError, "output features"),
        ("linear", fcm.InvalidQuestionError, "expected chain/dtype/sizes"),
        ("", fcm.Error, "expected chain/dtype/sizes"),
    ],
)
def test_bad_problems_say_what_is_wrong(text: str, error: type[fcm.Error], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        fcm.Problem(text)


def test_bad_sizes_say_what_is_wrong() -> None:
    with pytest.raises(fcm.InvalidSizesError, match="it must be at least 1"):
        fcm.Problem.rows("relu", "f32", m=0, n=1)
    with pytest.raises(fcm.InvalidSizesError, match="is missing"):
        fcm.Problem.rows("linear", "f32", m=1, n=1)
    with pytest.raises(OverflowError):
        fcm.Problem.rows("relu", "f32", m=-1, n=1)
    with pytest.raises(TypeError):
        fcm.Problem.rows("relu", "f32", m=1.5, n=1)  # type: ignore[arg-type]


def test_bad_files_say_what_is_wrong(tmp_path: pathlib.Path) -> None:
    with pytest.raises(fcm.CannotReadError, match="cannot read .*nothing.toml"):
        fcm.FusionCostModel.load(tmp_path / "nothing.toml")
    damaged = tmp_path / "damaged.toml"
    damaged.write_text(FILE.read_text()[:-100])
    with pytest.raises(fcm.InvalidFileError, match="damaged.toml"):
        fcm.FusionCostModel.load(damaged)
    with pytest.raises(fcm.InvalidFileError, match="it is a hardware profile"):
        fcm.FusionCostModel.from_text('kind = "hardware"\nschema_version = 2\n')
    with pytest.raises(fcm.HardwareMismatchError, match="i7-12700k"):
        fcm.FusionCostModel.load(FILE, expecting_hardware="i7-12700k")


def test_bad_targets_policies_and_graphs_say_what_is_wrong(on_cpu: fcm.OnTarget) -> None:
    with pytest.raises(fcm.UnknownNameError, match="unknown backend `cdua`; did you mean `cuda`"):
        fcm.Target("cdua")
    with pytest.raises(fcm.InvalidQuestionError, match="two clocks"):
        fcm.Target("cuda")
    with pytest.raises(fcm.UnknownNameError, match="cache state"):
        fcm.Target("cpu", cache_state="hot")
    with pytest.raises(fcm.UnknownNameError, match="did you mean `conservative`"):
        fcm.Policy("conservativ")
    with pytest.raises(ValueError, match="NaN"):
        fcm.Policy("error", threshold=math.nan)
    relu = fcm.Problem("relu/f32/m4.n4")
    with pytest.raises(fcm.InvalidQuestionError, match="node 0 reads node 0"):
        on_cpu.partition_graph([fcm.GraphNode(relu, input=0)], CONSERVATIVE)
    with pytest.raises(TypeError):
        on_cpu.estimate(MEASURED)  # type: ignore[arg-type]


def test_objects_do_not_change_and_show_what_they_are(on_cpu: fcm.OnTarget) -> None:
    gpu = fcm.Target("cuda", clock="device", implementation="vendor")
    assert (gpu.backend, gpu.threads, gpu.clock) == ("cuda", 1, "device")
    assert (gpu.cache_state, gpu.implementation) == ("warm", "vendor")
    assert eval(repr(gpu), {"Target": fcm.Target}) == gpu
    assert len({gpu, fcm.Target("cpu"), fcm.Target("cpu")}) == 2
    with pytest.raises(AttributeError):
        gpu.threads = 2  # type: ignore[misc]
    assert repr(on_cpu) == "<OnTarget cpu, 2 threads, warm caches>"
    policy = fcm.Policy("roofline", threshold=1.25)
    assert eval(repr(policy), {"Policy": fcm.Policy}) == policy
    node = fcm.GraphNode(fcm.Problem(MEASURED), input=1, operands=[0], is_output=True)
    assert eval(repr(node), vars(fcm)) == node
    with_a_state = FILE.read_text(encoding="utf-8") + STATE
    in_state = fcm.FusionCostModel.from_text(with_a_state).on(on_cpu.target, state=1)
    assert (in_state.state, on_cpu.state) == (1, None)
    assert in_state.estimate(fcm.Problem(MEASURED)).evidence == "measured"
    with pytest.raises(fcm.InvalidQuestionError, match="no state 7"):
        fcm.FusionCostModel.load(FILE).on(on_cpu.target, state=7)


def test_threads_may_ask_at_once(on_cpu: fcm.OnTarget) -> None:
    expected, answers = on_cpu.estimate(fcm.Problem(BETWEEN)), []

    def ask() -> None:
        model = fcm.FusionCostModel.load(FILE)
        answers.append(model.on(on_cpu.target).estimate(fcm.Problem(BETWEEN)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4
