"""OpenVINO on the CPU: a compiled model for each op, against one for the chain. It computes in the dtype
of the problem: its default would be bf16 wherever the processor has it."""

import onnx_chain
from calibrate_runtime import Prepared, no_dropout, plain_attention, serve


class OpenVino:
    name, needs, nchw = "openvino", ["numpy", "openvino"], True
    dtypes = ["f32", "bf16"]

    def version(self):
        import openvino

        return openvino.__version__.split("-")[0]

    def options(self, threads):
        import openvino

        self.core = openvino.Core()
        self.core.set_property(
            "CPU",
            {
                "INFERENCE_NUM_THREADS": threads,
                "NUM_STREAMS": "1",
                "PERFORMANCE_HINT": "LATENCY",
                "ENABLE_CPU_PINNING": "NO",
            },
        )
        return {"INFERENCE_PRECISION_HINT": "the dtype", "NUM_STREAMS": "1"}

    def supports(self, problem):
        no_dropout(problem)
        plain_attention(problem)
        onnx_chain.check(problem)

    def prepare(self, problem, tensors, threads):
        import numpy as np
        import openvino

        count = range(len(problem.ops))
        steps = [onnx_chain.Graph(problem, tensors, i, i + 1) for i in count]
        chain = onnx_chain.Graph(problem, tensors)

        def compiled(graph):
            hint = {"INFERENCE_PRECISION_HINT": problem.dtype}
            model = self.core.compile_model(self.core.read_model(graph.model()), "CPU", hint)
            return model, model.create_infer_request()

        requests, whole = [compiled(step) for step in steps], compiled(chain)
        between = [np.zeros(step.shape, tensors.dtype) for step in steps[:-1]]
        stored = {"f32": openvino.Type.f32, "bf16": openvino.Type.bf16}[problem.dtype]

        def shared(array):
            return openvino.Tensor(array, openvino.Shape(array.shape), stored)
        kernels = {
            "unfused": [layers(model) for model, _ in requests],
            "fused": [layers(whole[0])],
        }

        def bound(request, graph, x, y):
            for number in graph.names():
                array = x if number is None else tensors.input(number)
                request.set_tensor("x" if number is None else f"i{number}", shared(array))
            request.set_tensor("y", shared(y))
            return request

        def bind():
            x, bound_requests = tensors.input(0), []
            for (_, request), graph, y in zip(requests, steps, [*between, tensors.output]):
                bound_requests.append(bound(request, graph, x, y))
                x = y
            fused = bound(whole[1], chain, tensors.input(0), tensors.output)

            def unfused():
                for request in bound_requests:
                    request.infer()

            def run_fused():
                fused.infer()

            return {"unfused": unfused, "fused": run_fused}

        return Prepared(tensors, kernels, bind)


def layers(model):
    """What it made of a model: the layers that compute."""
    silent = ("Input", "Output", "Const", "Parameter", "Result")
    kinds = []
    for node in model.get_runtime_model().get_ordered_ops():
        facts = node.get_rt_info()
        kind = str(facts["layerType"].astype(str)) if "layerType" in facts else node.get_type_name()
        if kind not in silent:
            kinds.append(kind)
    return ", ".join(kinds)


if __name__ == "__main__":
    serve(OpenVino())
