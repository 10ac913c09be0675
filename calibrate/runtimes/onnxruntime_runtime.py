"""ONNX Runtime on the CPU: an optimised model for each op, against one optimised model of the chain. Both
are as fast as users get them, so that the difference is what is fused across ops."""

import os

import onnx_chain
from calibrate_runtime import Prepared, no_dropout, plain_attention, serve

# It would write to the cache folder of the user and look up the name of a host. It reads this when it
# is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


class OnnxRuntime:
    name, needs, nchw = "onnxruntime", ["numpy", "onnxruntime"], True

    def version(self):
        import onnxruntime

        return onnxruntime.__version__

    def options(self, threads):
        import onnxruntime as ort

        # One pool for all models: the threads of one would spin beside those of another.
        ort.set_global_thread_pool_sizes(threads, 1)
        return {"graph_optimization_level": "all, for each op and for the chain"}

    def supports(self, problem):
        no_dropout(problem)
        plain_attention(problem)
        onnx_chain.check(problem)

    def session(self, graph):
        """A session of a model, and the ops that it makes of it."""
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.use_per_session_threads = False
        options.log_severity_level = 3
        # What it made of the model, for the record. The folder is private.
        optimised = options.optimized_model_filepath = os.path.abspath("optimised.onnx")
        session = ort.InferenceSession(graph.model(), options, providers=["CPUExecutionProvider"])
        ops = ops_of(optimised)
        os.remove(optimised)
        return session, ops

    def prepare(self, problem, tensors, threads):
        import numpy as np

        count = range(len(problem.ops))
        steps = [onnx_chain.Graph(problem, tensors, i, i + 1, contrib=True) for i in count]
        sessions, ops = zip(*(self.session(step) for step in steps))
        chain = onnx_chain.Graph(problem, tensors)
        whole, ops_of_chain = self.session(chain)
        kernels = {
            "unfused": [" + ".join(of_op) for of_op in ops],
            "fused": [", ".join(ops_of_chain)],
        }
        between = [np.zeros(step.shape, np.float32) for step in steps[:-1]]

        def bound(session, graph, x, y):
            binding = session.io_binding()
            for number in graph.names():
                name = "x" if number is None else f"i{number}"
                array = x if number is None else tensors.input(number)
                binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
            binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
            return lambda: session.run_with_iobinding(binding)

        def bind():
            x, calls = tensors.input(0), []
            for session, graph, y in zip(sessions, steps, [*between, tensors.output]):
                calls.append(bound(session, graph, x, y))
                x = y

            def unfused():
                for call in calls:
                    call()

            return {"unfused": unfused, "fused": bound(whole, chain, tensors.input(0), tensors.output)}

        return Prepared(tensors, kernels, bind)


def ops_of(path):
    """The ops of a model, read from its protobuf: field 7 is the graph, 1 of that a node, 4 its op."""
    with open(path, "rb") as file:
        data = file.read()
    return [
        op.decode()
        for graph in fields(data, 7)
        for node in fields(graph, 1)
        for op in fields(node, 4)
    ]


def fields(data, wanted):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            varint()
        elif kind == 2:
            length = varint()
            if key >> 3 == wanted:
                yield data[at : at + length]
            at += length
        else:
            at += 8 if kind == 1 else 4


if __name__ == "__main__":
    serve(OnnxRuntime())
