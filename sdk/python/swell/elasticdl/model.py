"""A model file: ElasticDL's contract, on PyTorch.

    model, or custom_model(**model_params)   a torch.nn.Module
    loss(outputs, labels)                    or loss(labels, predictions), as in later versions of ElasticDL
    optimizer(parameters)                    or optimizer(), which returns a function of the parameters
    feed(records, mode, metadata)            returns (features, labels); earlier names: input_fn, dataset_fn
    eval_metrics_fn()                        returns {name: function(labels, outputs)}; optional
    callbacks()                              objects with on_train_end(), on_update(version, loss); optional
    PredictionOutputsProcessor, custom_data_reader   optional

Used by master.py and worker.py, which load the same file. What always holds: the parameters are one flat vector in the
module's order, so master and workers agree which number is which.
"""

import importlib.util
import inspect
import os
import sys

import torch

TRAINING, EVALUATION, PREDICTION = "training", "evaluation", "prediction"


class ModelFile:
    def __init__(self, options):
        path, wanted = _locate(options)
        # A model file may import modules from its own folder.
        for folder in (os.path.dirname(path), options.model_zoo):
            if folder and folder not in sys.path:
                sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location("elasticdl_model", path)
        self._module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._module)
        self.path = path
        self.net = self._build(wanted, _parameters(options.model_params))
        self._loss = self._need(options.loss)
        self._optimizer = self._need(options.optimizer)
        self._feed = self._first(options.feed, "input_fn", "dataset_fn")
        if self._feed is None:
            raise ValueError(f"{path} has neither {options.feed} nor input_fn")
        metrics = self._first(options.eval_metrics_fn, "metrics")
        self.metrics = metrics() if callable(metrics) else (metrics or {})
        callbacks = self._first(options.callbacks)
        self.callbacks = list(callbacks()) if callable(callbacks) else []
        self.custom_reader = self._first(options.custom_data_reader)
        processor = self._first(options.prediction_outputs_processor)
        self.processor = processor() if processor is not None else None

    def _build(self, wanted, parameters):
        found = self._first(*([wanted] if wanted else ["model", "custom_model"]))
        if found is None:
            raise ValueError(f"{self.path} has no {wanted or 'model and no custom_model'}")
        net = found if isinstance(found, torch.nn.Module) else found(**parameters)
        if not isinstance(net, torch.nn.Module):
            raise ValueError(f"{self.path}: the model is a {type(net).__name__}, not a torch.nn.Module")
        return net

    def _first(self, *names):
        return next((getattr(self._module, name) for name in names if name and hasattr(self._module, name)), None)

    def _need(self, name):
        found = self._first(name)
        if found is None:
            raise ValueError(f"{self.path} has no {name}")
        return found

    def loss(self, outputs, labels):
        names = list(inspect.signature(self._loss).parameters)
        return self._loss(labels, outputs) if names[:1] == ["labels"] else self._loss(outputs, labels)

    def optimizer(self, learning_rate=None):
        names = inspect.signature(self._optimizer).parameters
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        needed = any(p.default is p.empty and p.kind in positional for p in names.values())
        parameters = list(self.net.parameters())
        takes = needed or "parameters" in names or "params" in names
        made = self._optimizer(parameters) if takes else self._optimizer()
        if not isinstance(made, torch.optim.Optimizer):
            made = made(parameters)
        if learning_rate is not None:
            for group in made.param_groups:
                group["lr"] = learning_rate
        return made

    def feed(self, records, mode, metadata=None):
        arguments = (records, mode, metadata)[:max(1, len(inspect.signature(self._feed).parameters))]
        fed = self._feed(*arguments)
        return fed if isinstance(fed, tuple) and len(fed) == 2 else (fed, None)


class Flat:
    """A module's parameters and floating-point buffers as one vector."""

    def __init__(self, net):
        self.parameters = [p for p in net.parameters() if p.requires_grad]
        self.buffers = [b for b in net.buffers() if b.is_floating_point()]
        self.weights = sum(p.numel() for p in self.parameters)

    def values(self):
        return torch.cat([t.detach().reshape(-1).float() for t in (*self.parameters, *self.buffers)])

    def gradients(self):
        """The gradients, followed by the buffers, which the forward pass may have changed."""
        parts = [torch.zeros(p.numel()) if p.grad is None else p.grad.reshape(-1).float() for p in self.parameters]
        return torch.cat(parts + [b.reshape(-1).float() for b in self.buffers])

    def load_values(self, vector):
        _copy_into((*self.parameters, *self.buffers), vector)

    def load_buffers(self, vector):
        _copy_into(self.buffers, vector)

    def load_gradients(self, vector):
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        _copy_into([p.grad for p in self.parameters], vector)


def _copy_into(tensors, vector):
    at = 0
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(vector[at:at + tensor.numel()].view_as(tensor))
            at += tensor.numel()


def vector_of(payload):
    return torch.frombuffer(payload, dtype=torch.float32) if len(payload) else torch.empty(0)


def bytes_of(vector):
    return memoryview(vector.contiguous().numpy()).cast("B")


def _locate(options):
    """(path, name) of the model. --model_def has both: "mnist.mnist_model.custom_model"."""
    if options.model_def:
        *module, name = options.model_def.split(".")
        for parts in (module, [*module, name]):
            path = os.path.join(options.model_zoo or ".", *parts) + ".py"
            if parts and os.path.exists(path):
                return path, name if parts is module else None
        raise ValueError(f"--model_def {options.model_def}: there is no such file below {options.model_zoo or '.'}")
    if not options.model_file:
        raise ValueError("--model_file or --model_def is needed")
    return options.model_file, None


def _parameters(text):
    """The keyword arguments in "hidden=64;rate=0.5"."""
    parameters = {}
    for pair in filter(None, (part.strip() for part in (text or "").split(";"))):
        name, _, value = pair.partition("=")
        value = value.strip().strip("'\"")
        for kind in (int, float):
            try:
                value = kind(value)
                break
            except ValueError:
                continue
        parameters[name.strip()] = value
    return parameters
