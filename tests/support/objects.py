"""Random histories of objects: of the models that come with isolang, and of random machines."""

from __future__ import annotations

import math

from msgspec.structs import replace

from isolang import UNKNOWN, Model, Operation, models


def random_call(random, name):
    """A function, an argument, and a result that may be wrong."""
    value = random.randrange(3)
    some = random.choice([None, 0, 1, 2])
    truth = random.choice([True, False])
    match name:
        case "register":
            return random.choice(
                [("read", None, some), ("write", value, None), ("cas", (some, value), truth)]
            )
        case "counter":
            return random.choice(
                [
                    ("read", None, random.randrange(-1, 4)),
                    ("add", random.randrange(-1, 3), None),
                    ("increment", None, random.choice([None, 1, 2])),
                    ("decrement", None, None),
                ]
            )
        case "queue" | "unordered-queue":
            return random.choice([("enqueue", value, None), ("dequeue", None, some)])
        case "stack":
            return random.choice([("push", value, None), ("pop", None, some)])
        case "set":
            read = ("read", None, frozenset(v for v in range(3) if random.random() < 0.5))
            return random.choice(
                [
                    ("add", value, random.choice([None, truth])),
                    ("contains", value, truth),
                    read,
                    ("remove", value, random.choice([None, truth])),
                ]
            )
        case "mutex":
            return random.choice([("acquire", None, truth), ("release", None, truth)])
        case "list":
            read = tuple(random.randrange(2) for _ in range(random.randrange(3)))
            return random.choice([("append", value % 2, None), ("read", None, read)])
    raise ValueError(name)


def random_machine(random):
    """A model by a random table: functions f and g, results 0 and 1, up to four states.

    Function g observes if the table happens to keep every state.
    """
    states = range(random.randrange(2, 5))
    observes = random.random() < 0.5
    table = {}
    for state in states:
        for f in ("f", "g"):
            for output in (0, 1):
                if f == "g" and observes:
                    after = [state] if random.random() < 0.5 else []
                else:
                    after = [other for other in states if random.random() < 1.2 / len(states)]
                table[state, f, output] = after

    def step(state, call):
        outputs = (0, 1) if call.output is UNKNOWN else (call.output,)
        return [after for output in outputs for after in table[state, call.f, output]]

    def is_observer(call):
        return call.f == "g" and observes

    return Model(0, step, name="machine", observes=is_observer)


def random_history(random, size, call, *, keys=1, ties=False):
    """Operations at random times, some of which never return, or return something unknown."""
    moments = [random.randrange(2 * size) if ties else i for i in range(2 * size)]
    if not ties:
        random.shuffle(moments)
    history = []
    for i in range(size):
        start, end = sorted(moments[2 * i : 2 * i + 2])
        if random.random() < 0.5:  # most operations are short
            end = min(end, start + random.randrange(1, 4) + (0 if ties else 0.5))
        f, argument, output = call(random)
        pending = random.random() < 0.15
        if pending or random.random() < 0.1:
            output = UNKNOWN
        history.append(
            Operation(
                f,
                argument,
                output,
                start=start,
                end=math.inf if pending else end,
                key=random.randrange(keys) if keys > 1 else None,
                process=i,
            )
        )
    return history


def random_run(random, size, clients, name, *, wrong=0, lost=0.0, functions=None):
    """A history of a model that is linearizable, except for ``wrong`` results that are changed.

    Operations take effect at a moment between their starts and ends, one after another.

    Args:
        lost: the share of operations that never return.
        functions: what draws a call, if not that of the model called ``name``.
    """
    model = models.READY[name]()
    call = functions or (lambda random: random_call(random, name))
    clock, state = 0, model.initial
    free = list(range(clients))
    waiting, running, history = {}, [], []
    while len(history) < size or running:
        clock += 1
        if len(history) + len(running) < size and free and random.random() < 0.6:
            client = free.pop(random.randrange(len(free)))
            f, argument, _ = call(random)
            running.append(client)
            waiting[client] = [Operation(f, argument, start=clock, process=client), False]
        elif running:
            client = random.choice(running)
            operation, effective = waiting[client]
            if not effective:
                operation, state = effect(model, state, operation, random)
                waiting[client] = [operation, True]
                continue
            running.remove(client)
            free.append(client)
            if random.random() < lost:
                history.append(replace(operation, output=UNKNOWN, end=math.inf))
            else:
                history.append(replace(operation, end=clock))
    outputs = [i for i, o in enumerate(history) if o.f in _TELLING and o.end != math.inf]
    for i in random.sample(outputs, min(wrong, len(outputs))):
        values = [o.output for o in history if o.f == history[i].f and o.output is not UNKNOWN]
        history[i] = replace(history[i], output=random.choice(values))
    return history


_TELLING = ("read", "dequeue", "pop", "contains", "cas", "acquire", "release")


def effect(model, state, operation, random):
    """Carry out an operation: the operation with its result, and the next state."""
    f, argument = operation.f, operation.input
    if f == "read":
        output = frozenset(state) if model.name == "set" else state
    elif f in ("dequeue", "pop"):
        if not state:
            output = None
        elif model.name == "unordered-queue":
            output = random.choice(state)
        else:
            output = state[0] if f == "dequeue" else state[-1]
    elif f == "contains":
        output = argument in state
    elif f == "cas":
        output = state == argument[0] and type(state) is type(argument[0])
    elif f in ("acquire", "release"):
        output = state is not (f == "acquire")
    else:
        output = None
    done = replace(operation, output=output)
    (state,) = model.step(state, done)
    return done, state
