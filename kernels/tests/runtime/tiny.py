"""A tiny runtime for tests: `mul` and `relu` in plain Python. Its arguments are a flaw, or `none`, and its
name."""

import array
import json
import math
import mmap
import os
import signal
import subprocess
import sys
import threading
import time

FLAW, NAME = [*sys.argv[1:], "tiny"][:2]
OPS = {
    "mul": lambda x, other: [a * b for a, b in zip(x, other)],
    "relu": lambda x: [max(a, 0.0) for a in x],
}
BYTES = {"f32": 4, "bf16": 2}
problems = {}
runs = 0


def decoded(dtype, data):
    if dtype == "f32":
        return array.array("f", data)
    # The upper halves of numbers in f32.
    halves = array.array("H", data)
    return array.array("f", array.array("I", (half << 16 for half in halves)).tobytes())


def encoded(dtype, numbers):
    data = array.array("f", numbers).tobytes()
    if dtype == "f32":
        return data
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 for bits in array.array("I", data))
    return array.array("H", rounded).tobytes()


def prepare(state, problem, files, output):
    state["dtype"] = problem["dtype"]
    read = lambda path: decoded(state["dtype"], open(path, "rb").read())
    state["inputs"] = [read(path) for path in files]
    state["ops"] = [(OPS[op["op"]], op["operands"]) for op in problem["ops"]]
    count = math.prod(problem["output"])
    state["result"] = [0.0] * count
    state["file"] = mmap.mmap(os.open(output, os.O_RDWR), count * BYTES[state["dtype"]])
    state["handle"] = os.open(output, os.O_RDWR)


def compute(state):
    x = state["inputs"][0]
    for op, operands in state["ops"]:
        x = op(x, *(state["inputs"][operand] for operand in operands))
    state["result"] = x


def hang_if(it_does):
    if it_does:
        open("hanging", "w").close()
        time.sleep(3600)


def run(state, variant, iterations):
    global runs
    if not iterations:
        return {"ns": 0}
    runs += 1
    hang_if("hang" in FLAW)
    if FLAW == "crash":
        sys.exit("error: out of ideas")
    if FLAW == "late-crash" and runs > 20:
        os.abort()
    if FLAW == "raises" and runs in (2, 3):
        return {"error": f"run {runs}"}
    if FLAW == "leaves-at-run":
        sys.exit()
    begin = time.perf_counter_ns()
    for _ in range(1 if FLAW == "only-first" else iterations):
        compute(state)
    if FLAW == "many-threads":
        if runs == 1:
            for _ in range(2):
                threading.Thread(target=spin, args=(math.inf,), daemon=True).start()
        spin(time.perf_counter() + 0.02)
    if FLAW == "short-threads":
        until = time.perf_counter() + 0.05
        threads = [threading.Thread(target=spin_elsewhere, args=(index, until)) for index in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    if FLAW == "children":
        if runs == 1:
            for _ in range(4):
                start_child(math.inf)
        time.sleep(0.02)
    if FLAW == "short-children":
        [os.waitpid(child, 0) for child in [start_child(0.02) for _ in range(4)]]
    if FLAW == "holds-back":
        spin(time.perf_counter() + 0.002)
    if FLAW == "fast-clock":
        spin(time.perf_counter() + 0.15)  # So long that no message explains the half of it.
    taken = time.perf_counter_ns() - begin
    wrong_from = {"wrong": 0, "late-wrong": 20}.get(FLAW, math.inf)
    if runs > wrong_from or FLAW == "wrong-fused" and variant == "fused":
        state["result"] = [x + 0.5 for x in state["result"]]
    if FLAW == "fast-clock":
        taken = taken // 2
    if FLAW == "half-fused" and variant == "fused":
        taken = taken // 2
    if FLAW == "slow-clock":
        taken = taken * 2 + 1_000_000
    if FLAW == "swaps-times":
        # It says of the first of two that it took nearly all of the time, and of the second nothing.
        taken = taken * 50 if runs % 2 else 1
    return {"ns": taken}


def spin(until):
    import hashlib

    block = bytes(1 << 20)
    while time.perf_counter() < until:
        hashlib.sha256(block)  # Without the lock of the interpreter, so that threads do not take turns.


def spin_elsewhere(index, until):
    """Spins on one of all processors. Whoever may only go there stays where it is for a while."""
    os.sched_setaffinity(0, range(os.cpu_count()))  # Of this thread only.
    places = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {places[index % len(places)]})
    spin(until)


def start_child(seconds):
    """A process that computes for some seconds of processor time."""
    child = os.fork()
    if not child:
        os.sched_setaffinity(0, range(os.cpu_count()))
        while time.process_time() < seconds:
            pass
        os._exit(0)
    return child


def answer(do, id=0, problem=None, files=(), output="", variant="", iterations=0, **_):
    if do == "hello":
        if FLAW == "missing":
            return {"missing": "No module named 'tiny'"}
        if FLAW == "dies" or FLAW == "dies-once" and not os.path.exists("died"):
            open("died", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if "escapes" in FLAW:
            # In a session of its own, and an orphan as soon as the shell has ended.
            escape = "sleep 3600 & true"
            subprocess.run(escape, shell=True, start_new_session=True, stdout=subprocess.DEVNULL)
        hang_if(FLAW == "escapes-at-hello")
        if FLAW == "leaves":
            open("left-behind", "w").close()
            subprocess.Popen(["sleep", "3600"], stdout=subprocess.DEVNULL)
        dtypes = {"bf16-only": ["bf16"], "other-names": ["float32", "bf16"]}.get(FLAW, [*BYTES])
        device = "cuda" if FLAW == "other-device" else "cpu"
        return dict(name=NAME, version="1.2", device=device, dtypes=dtypes, clock="host")
    if do == "supports":
        hang_if(FLAW == "escapes-at-supports")
        if FLAW == "dies-at-tanh" and problem["ops"][-1]["op"] == "tanh":
            os.abort()
        lacking = [op["op"] for op in problem["ops"] if op["op"] not in OPS]
        return {"unsupported": f"it has no {lacking[0]}"} if lacking else {}
    if do == "prepare":
        if FLAW == "refuses":
            return {"error": "no kernels today"}
        if FLAW == "finds-none":
            return {"unsupported": "no kernels today"}
        prepare(problems.setdefault(id, {}), problem, files, output)
        names = [op["op"] for op in problem["ops"]]
        fused = [] if FLAW == "no-kernels" else ["+".join(names)]
        return dict(kernels=dict(unfused=names, fused=fused), layouts=True)
    state = problems[id]
    if do == "run":
        return run(state, variant, iterations)
    if do == "poison" and FLAW != "unpoisoned":
        state["result"] = [math.nan] * len(state["result"])
    if do == "output":
        if FLAW == "silent-output":
            return {}
        if FLAW == "short-output":
            os.ftruncate(state["handle"], 4)
            return {}
        state["file"][:] = encoded(state["dtype"], state["result"])
    return {}


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def is_about_tanh(do, problem=None, **_):
    return do == "supports" and problem["ops"][-1]["op"] == "tanh"


for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "end":
        while FLAW == "chatters":
            write("Goodbye!\n" * (1 << 12))
        break
    if FLAW == "rubbish":
        write("Loading weights: 100 %\n")
    if FLAW == "huge":
        while True:
            write("x" * (1 << 16))
    number = request["n"] + (FLAW == "out-of-turn")
    answered = answer(**request) | {"n": number}
    if FLAW == "holds-back" and request.get("iterations"):
        if runs % 2:
            held = answered
            continue
        # The half of the second runs' time goes to the first.
        held["ns"] += answered["ns"] // 2
        answered["ns"] -= answered["ns"] // 2
        write(json.dumps(held) + "\n")
    line = json.dumps(answered) + "\n"
    if FLAW == "talks":
        line += "\n"
    if is_about_tanh(**request) and FLAW == "repeats-tanh":
        line += line
    if FLAW == "repeats-run" and request.get("iterations"):
        line += line
    write(line)
    if is_about_tanh(**request) and FLAW == "dies-behind-tanh":
        os.abort()
