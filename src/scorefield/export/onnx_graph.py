"""ONNX graphs of described networks; see `scorefield.export.network_description`.

Standardisation, Bayes' rule and costs are computed in double precision and the networks in single, as in this library.
"""

import json

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

# Of 2022; later versions of the operators used here differ in notation only, so that old runtimes are served too.
OPSET, IR_VERSION = 17, 8
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
LABELS = {bool: (bool, TensorProto.BOOL), int: (np.int64, TensorProto.INT64), float: (float, TensorProto.DOUBLE),
          str: (object, TensorProto.STRING)}  # fmt: skip
ROWS = "rows"
# The name of the node that fails is all that a runtime tells of a graph's error.
REFUSAL = "expected_finite_rows_got_NaN_or_infinity"


class Graph:
    """Nodes and constants of a graph in the making. Calling it adds a node and returns the name of its output."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, values):
        """The name of an array or number; equal ones are stored once."""
        values = np.asarray(values)
        key = values.dtype.str, values.shape, values.tobytes()
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(values, f"constant_{len(self.constants)}")
        return self.constants[key].name

    def __call__(self, operator, *inputs, name=None, **attributes):
        name = name or f"{operator}_{len(self.nodes)}"
        inputs = [given if isinstance(given, str) else self.constant(given) for given in inputs]
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def single(self, values):
        return self("Cast", values, to=TensorProto.FLOAT)

    def double(self, values):
        return self("Cast", values, to=TensorProto.DOUBLE)

    def columns(self, values, places):
        """Columns of rows by their positions."""
        return self("Gather", values, np.asarray(places, np.int64), axis=1)

    def row_sums(self, values):
        return self("ReduceSum", values, np.array([1]), keepdims=0)


def onnx_model(described):
    """A checked ONNX model of a described network."""
    graph, given, output = Graph(), described["input"], described["output"]
    rows = _finite(graph, given["dtype"])
    parts = _standardized(graph, rows, given) if given["kind"] == "numbers" else _split(graph, rows, given)
    energies = [_energies(graph, parts, member) for member in described["members"]]
    energies = graph("Div", graph("Sum", *energies), np.float32(len(energies))) if energies else None
    if "classes" in output:
        results = _decision(graph, _with_rules(graph, parts, energies, described), output)
    else:
        results = [_log_density(graph, parts, energies, described["base"], output)]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            described["model"],
            [helper.make_tensor_value_info(ROWS, TYPES[given["dtype"]], ["n", _width(given)])],
            results,
            initializer=list(graph.constants.values()),
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="scorefield",
        producer_version=described["version"],
        doc_string=_told(described),
    )
    helper.set_model_props(model, _properties(described))
    checker.check_model(model, full_check=True)
    return model


def _width(given):
    return len(given["mean"]) if given["kind"] == "numbers" else 2 * len(given["numbers"]) + len(given["levels"])


def _told(described):
    """What the model takes and gives, in a sentence."""
    made = "raw rows" if described["input"]["kind"] == "numbers" else "rows made by scorefield.encode_rows"
    gives = "label and probabilities of the classes" if "classes" in described["output"] else "log_density"
    return f"A fitted {described['model']} of scorefield. Input: {ROWS}, {made}. Output for each row: {gives}."


def _properties(described):
    """Texts that a runtime shows; lists are JSON."""
    given = described["input"]
    found = {"scorefield": described["version"], "columns": json.dumps(described["columns"]), "input": given["kind"]}
    if given["kind"] == "encoded":
        found |= {name: json.dumps(given[name]) for name in ("numbers", "categories", "levels")}
    if "classes" in described["output"]:
        found["classes"] = json.dumps(described["output"]["classes"])
    return found


def _finite(graph, dtype):
    """The rows; an index beyond its array makes the runtime stop where one of them is not finite."""
    finite = graph("Less", graph("Abs", ROWS), np.array(np.inf, dtype))
    wrong = graph("Cast", graph("Not", finite), to=TensorProto.INT64)
    count = graph("ReduceSum", wrong, keepdims=0)
    return graph("Add", ROWS, graph("Gather", np.zeros(1, dtype), count, name=REFUSAL))


def _standardized(graph, rows, given):
    """Numbers x of raw rows."""
    z = graph("Div", graph("Sub", graph.double(rows), given["mean"]), given["scale"])
    z = graph("Clip", z, np.array(-given["furthest"]), np.array(given["furthest"]))
    z = z if given["mix"] is None else graph("MatMul", z, given["mix"])
    return {"x": graph.single(z), "indicators": None}


def _split(graph, rows, given):
    """Numbers, where they are known, and indicators of the levels of encoded rows; None for parts of no columns."""
    p, levels = len(given["numbers"]), given["levels"]
    x, known = (graph.columns(rows, range(start, start + p)) if p else None for start in (0, p))
    shown = []
    if levels:
        places = np.repeat(2 * p + np.arange(len(levels)), levels)
        codes = np.concatenate([np.arange(size) for size in levels]).astype(np.float32)
        own = graph.columns(rows, places)
        reached = graph("Equal", own, codes)
        if any(given["ordered"]):
            below = graph("And", graph("Greater", own, codes), np.repeat(given["ordered"], levels))
            reached = graph("Or", reached, below)
        shown.append(graph.single(reached))
    parts = {"x": x, "known": known, "levels": shown[0] if shown else None}
    if given["spikes"]:
        parts["x"] = graph("Mul", x, _off_spikes(graph, rows, p, given["spikes"]))
    shown += [known] if p else []
    return parts | {"indicators": graph("Concat", *shown, axis=1)}


def _off_spikes(graph, rows, p, spikes):
    """Zero for numbers that are at a spike, one for others."""
    spiked, places = np.zeros(p, np.float32), np.zeros(p, int)
    for number, category in spikes:
        spiked[number], places[number] = 1.0, 2 * p + category
    at_spike = graph.single(graph("Greater", graph.columns(rows, places), np.float32(0)))
    return graph("Sub", np.float32(1), graph("Mul", at_spike, spiked))


def _energies(graph, parts, member):
    """Outputs of one network, (n, classes)."""
    seen = [] if parts["x"] is None else _views(graph, parts["x"], member)
    seen += [] if parts["indicators"] is None else [parts["indicators"]]
    u = graph("Concat", *seen, axis=1)
    for number, layer in enumerate(member["layers"]):
        u = u if number == 0 else ACTIVATIONS[member["activation"]](graph, u)
        u = graph("Add", graph("MatMul", u, layer["weights"]), layer["bias"])
    return u


def _with_rules(graph, parts, energies, described):
    """Logits of the posterior: the energies and, by its share, a rule model of the labels."""
    if described["rules"] is None:
        return energies
    share, rules = np.float32(described["share"]), _energies(graph, parts, described["rules"])
    return graph("Add", graph("Mul", energies, np.float32(1) - share), graph("Mul", rules, share))


def _views(graph, x, member):
    """Numbers as a network sees them, and their steps."""
    u = graph("Div", graph("Sub", x, member["shift"]), member["scale"])
    if member["rotation"] is not None:
        u = graph("Concat", u, graph("MatMul", u, member["rotation"]), axis=1)
    if member["reach"] is not None:
        part = graph("Mul", u, np.float32(1 / member["reach"]))
        u = graph("Div", u, graph("Sqrt", graph("Add", np.float32(1), graph("Mul", part, part))))
    if not member["columns"]:
        return [u]
    repeated = np.repeat(member["columns"], member["thresholds"].shape[1])
    above = graph("Sub", graph.columns(u, repeated), member["thresholds"].ravel())
    return [u, graph("Tanh", graph("Mul", member["slopes"].ravel(), above))]


def _silu(graph, u):
    return graph("Mul", u, graph("Sigmoid", u))


def _gelu(graph, u):
    """The form with tanh, jax's default."""
    cubed = graph("Mul", graph("Mul", u, u), u)
    inner = graph("Add", u, graph("Mul", np.float32(0.044715), cubed))
    tanh = graph("Tanh", graph("Mul", np.float32(np.sqrt(2 / np.pi)), inner))
    return graph("Mul", graph("Mul", np.float32(0.5), u), graph("Add", np.float32(1), tanh))


ACTIVATIONS = {
    "silu": _silu,
    "gelu": _gelu,
    "softplus": lambda graph, u: graph("Softplus", u),
    "tanh": lambda graph, u: graph("Tanh", u),
}


def _decision(graph, energies, output):
    """Labels of least expected cost, and probabilities."""
    logits = graph("Add", graph.double(energies), output["class_constants"])
    logits = graph("Add", graph("Div", logits, np.array(output["temperature"])), output["intercepts"])
    logs = graph("LogSoftmax", logits, axis=1)
    graph("Cast", graph("Exp", logs), to=TYPES[output["dtype"]], name="probabilities")
    # Expected costs matter up to a factor per row, so that a softmax of the shifted logarithms is as good as their exp.
    margins = np.full(len(output["classes"]), output["margin"])
    margins[0] = 0.0
    costs = graph("MatMul", graph("Softmax", graph("Sub", logs, margins), axis=1), output["costs"])
    least = graph("ArgMin", costs, axis=1, keepdims=0, select_last_index=1)
    dtype, label_type = LABELS[type(output["classes"][0])]
    graph("Gather", np.array(output["classes"], dtype), least, name="label")
    probabilities = TYPES[output["dtype"]], ["n", len(output["classes"])]
    return [
        helper.make_tensor_value_info("label", label_type, ["n"]),
        helper.make_tensor_value_info("probabilities", *probabilities),
    ]


def _log_density(graph, parts, energies, base, output):
    """Log density of each row."""
    terms = BASES[base["kind"]](graph, parts, base)
    terms += [] if energies is None else [graph.double(graph.row_sums(energies))]  # one output per row
    terms += _log_slopes(graph, parts, output["log_slopes"])
    total = graph("Add", graph("Sum", *terms), np.array(output["constant"]))
    graph("Cast", total, to=TYPES[output["dtype"]], name="log_density")
    return helper.make_tensor_value_info("log_density", TYPES[output["dtype"]], ["n"])


def _whitened_squares(graph, x, base):
    z = graph("MatMul", graph("Sub", x, base["mean"]), base["whiten"])
    return graph("Mul", z, z)


def _gaussian(graph, parts, base):
    squares = graph.double(graph.row_sums(_whitened_squares(graph, parts["x"], base)))
    return [graph("Add", graph("Mul", squares, np.array(-0.5)), np.array(base["constant"]))]


def _mixture(graph, parts, base):
    """Log of the sum of the parts, with the largest taken out."""
    columns = []
    for weight, part in zip(base["log_weights"], base["parts"], strict=True):
        (log,) = _gaussian(graph, parts, part)
        columns.append(graph("Unsqueeze", graph("Add", log, np.array(float(weight))), np.array([1])))
    logs = graph("Concat", *columns, axis=1)
    largest = graph("ReduceMax", logs, axes=[1], keepdims=1)
    total = graph("Log", graph.row_sums(graph("Exp", graph("Sub", logs, largest))))
    return [graph("Add", total, graph("Squeeze", largest, np.array([1])))]


def _student(graph, parts, base):
    squares, nu = _whitened_squares(graph, parts["x"], base), float(base["degrees"])
    squares = squares if base["per_column"] else graph("ReduceSum", squares, np.array([1]), keepdims=1)
    size = 1 if base["per_column"] else len(base["mean"])
    logs = graph("Log", graph("Add", np.array(1.0), graph("Div", graph.double(squares), np.array(nu))))
    return [graph("Add", graph("Mul", graph.row_sums(logs), np.array(-0.5 * (nu + size))), np.array(base["constant"]))]


def _independent_columns(graph, parts, base):
    terms = []
    if parts["x"] is not None:
        z = graph("Div", parts["x"], base["deviations"])
        constants = -np.log(base["deviations"]) - np.float32(0.5 * np.log(2 * np.pi))
        logs = graph("Add", graph("Mul", graph("Mul", z, z), np.float32(-0.5)), constants)
        terms.append(graph.double(graph.row_sums(graph("Mul", logs, parts["known"]))))
    if parts["levels"] is not None:
        terms.append(graph.double(graph("MatMul", parts["levels"], base["log_shares"])))
    return terms


BASES = {"gaussian": _gaussian, "mixture": _mixture, "student": _student, "columns": _independent_columns}


def _log_slopes(graph, parts, slopes):
    """Log of the volume by which normal scores stretch the known numbers of encoded rows."""
    if not slopes:
        return []
    known = graph.double(parts["known"])
    terms = [graph("MatMul", known, np.array([slope["values"][0] for slope in slopes]))]
    places = np.repeat(np.arange(len(slopes)), [len(slope["cuts"]) for slope in slopes])
    if len(places):
        cuts = np.concatenate([slope["cuts"] for slope in slopes])
        above = graph("Not", graph("Less", graph.double(graph.columns(parts["x"], places)), cuts))
        above = graph("Mul", graph.double(above), graph.columns(known, places))
        terms.append(graph("MatMul", above, np.concatenate([np.diff(slope["values"]) for slope in slopes])))
    return terms
