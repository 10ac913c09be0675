"""Whether Inductor asks, whether an answer changes what it makes, and whether kernels have the right
names. Skipped where torch or the wheel of the cost model is not installed."""

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
pytest.importorskip("fusion_cost_model", reason="not installed: pip install ./bindings/python")

import torch._inductor.config as inductor_config
from allow_list import exported, kernels, partitioned
from choices import Asking, Question, as_inductor, backend, by_cost, never, op_by_op
from fusion_cost_model import FusionCostModel, Policy, Problem, Target
from models import MODELS
from problems import calls_of, problem_of

EXAMPLE = Path(__file__).parents[2] / "tests" / "data" / "example.toml"
MEASURED = Problem("add_relu/f32/m4096.n1024")


@pytest.fixture(autouse=True)
def without_caches():
    with torch.no_grad(), inductor_config.patch(force_disable_caches=True, compile_threads=1):
        yield


@pytest.fixture(scope="module")
def on_cpu():
    return FusionCostModel.load(EXAMPLE).on(Target("cpu", threads=2))


class AddLayerNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x, other):
        return self.norm(x + other)


def compiled(answer):
    """The choices that were asked."""
    torch.manual_seed(0)
    module, inputs = AddLayerNorm(67), [torch.randn(7, 67) for _ in range(2)]
    choices = Asking(answer)
    result = torch.compile(module, backend=backend(choices), dynamic=False)(*inputs)
    torch.testing.assert_close(result, module(*inputs))
    return choices


def test_inductor_asks_and_a_veto_leads_to_more_kernels():
    fused, apart, none = map(compiled, (as_inductor, op_by_op, never))
    assert Problem("add_layernorm/f32/m7.n67") in {question.problem for question in fused.answers}
    assert [kernel.ops for kernel in fused.kernels] == [("add", "native_layer_norm")]
    assert len(fused.kernels) < len(apart.kernels) <= len(none.kernels)


def test_the_calibration_answers_what_it_knows(on_cpu):
    known = on_cpu.estimate(MEASURED)
    assert known.evidence == "measured"
    question = Question(("add", "relu"), MEASURED)
    for threshold, expected in [(known.speedup.low / 2, True), (2 * known.speedup.high, False)]:
        answer = by_cost(on_cpu, Policy("conservative", threshold=threshold))
        assert answer(question) is expected
    # The rest is left to Inductor: parts of an op, other ops, and what is not in the file.
    assert answer(Question(("relu",), MEASURED)) is None
    assert answer(Question(("sort", "relu"), None)) is None
    for text, evidence in [("tanh+mul/f64/m3.n5", "unknown"), ("tanh+mul/f32/m3.n5", "roofline")]:
        problem = Problem(text)
        assert on_cpu.estimate(problem).evidence == evidence
        assert answer(Question(("tanh", "mul"), problem)) is None


def problem(function, *shapes):
    """The name of all that a function does."""
    module = torch.nn.Module()
    module.forward = function
    graph = exported(module, tuple(torch.randn(shape) for shape in shapes)).graph
    found = problem_of(calls_of(graph))
    return found and str(found)


@pytest.mark.parametrize(
    ("function", "shapes", "name"),
    [
        (lambda x: torch.relu(x + 1), [(3, 5)], None),
        (lambda x: torch.relu(x * 2), [(3, 5)], "scale+relu/f32/m3.n5"),
        (lambda x: torch.relu(x / 2), [(2, 3, 5)], "scale+relu/f32/m6.n5"),
        (lambda x, y: torch.relu(x + y), [(3, 5), (3, 5)], "add_relu/f32/m3.n5"),
        (lambda x, y: torch.relu(x + y), [(3, 5), (5,)], "bias+relu/f32/m3.n5"),
        (lambda x, y: torch.relu(x + y), [(3, 5), (3, 1)], None),
        (lambda x, y: torch.sigmoid(x) * y, [(1, 1), (1, 1)], "sigmoid+scale/f32/m1.n1"),
        (lambda x: torch.sigmoid(x) * x, [(3, 5)], "sigmoid_mul/f32/m3.n5"),
        (lambda x: torch.relu(x) * torch.relu(x + x), [(3, 5)], None),
        (lambda x: torch.nn.functional.gelu(x).softmax(-1), [(3, 5)], "gelu+softmax/f32/m3.n5"),
        (
            lambda x: torch.nn.functional.gelu(x, approximate="tanh").softmax(-1),
            [(3, 5)],
            "gelu_tanh+softmax/f32/m3.n5",
        ),
        (lambda x: torch.cumsum(x, 0).relu(), [(3, 5)], None),
        (lambda x: x.sum(0).relu(), [(3, 5)], None),
        (lambda x: torch.relu(x).double().tanh(), [(3, 5)], None),
    ],
)
def test_what_a_kernel_computes_has_a_name(function, shapes, name):
    assert problem(function, *shapes) == name


@pytest.mark.parametrize("model", MODELS)
def test_an_allow_list_has_the_kernels_of_the_split(on_cpu, model):
    module, inputs = MODELS[model](small=True)
    graph = exported(module, inputs)
    split = kernels(graph, on_cpu, Policy("optimistic"))
    listed = {node for kernel in split for call in kernel for node in call.nodes}
    found = [node for partition in partitioned(graph, split) for node in partition.nodes]
    assert listed and set(found) == listed and len(found) == len(listed)
    assert all(math.prod(node.meta["val"].shape) > 0 for node in found)


def test_an_empty_split_is_an_empty_list(on_cpu):
    graph = exported(*MODELS["bert"](small=True))
    assert partitioned(graph, []) == []
