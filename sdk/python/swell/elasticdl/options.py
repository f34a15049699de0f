"""The options of the pods of an ElasticDLJob, which `elasticdl` passes on from its own flags.

Used by master.py and worker.py. What always holds: the master and the workers of a job have the same options.
"""

import argparse
import os


def parse(arguments=None):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    text = parser.add_argument
    text("--mode", choices=("train", "evaluate", "predict"), default="train")
    text("--job_name", default=os.environ.get("JOB_NAME", "job"))
    text("--model_file", default="")
    text("--model_zoo", default="")
    text("--model_def", default="")
    text("--model_params", default="")
    for name in ("loss", "optimizer", "feed", "eval_metrics_fn", "callbacks", "custom_data_reader"):
        text(f"--{name}", default=name)
    text("--prediction_outputs_processor", default="PredictionOutputsProcessor")
    text("--data", default="", help="where the records are")
    text("--validation_data", default="")
    text("--data_reader_params", default="")
    text("--codec_type", choices=("bytes", "tf_example", "csv"), default="bytes")
    number = lambda name, default: parser.add_argument(name, type=int, default=default)  # noqa: E731
    number("--records_limit", int(os.environ.get("SWELL_ELASTICDL_RECORDS") or 0))
    number("--minibatch_size", 64)
    number("--records_per_task", 512)
    number("--num_epochs", 1)
    number("--grads_to_wait", 1)
    number("--sync_version_tolerance", 0)
    number("--evaluation_steps", 0)
    number("--checkpoint_steps", 0)
    number("--keep_checkpoint_max", 3)
    number("--log_loss_steps", 100)
    number("--max_step", 0)
    number("--seed", 1)
    number("--get_model_steps", 1)
    number("--task_timeout_s", 300)
    number("--worker_timeout_s", 30)
    number("--tries_max", 3)
    text("--shuffle", type=_truth, default=True)
    text("--use_async", type=_truth, default=False)
    text("--lr_staleness_modulation", type=_truth, default=False)
    text("--task_fault_tolerance", type=_truth, default=True)
    text("--learning_rate", type=float, default=None)
    text("--step_seconds", type=float, default=float(os.environ.get("SWELL_ELASTICDL_STEP_SECONDS") or 0),
         help="a minibatch takes at least this long; for demonstrations, so that they last as long on any machine")
    text("--hold_file", default=os.environ.get("SWELL_ELASTICDL_HOLD_FILE", ""),
         help="a file with a number N: while it exists, each worker waits after N minibatches; for demonstrations that "
         "must not end before something has happened")
    text("--checkpoint_dir", default="")
    text("--checkpoint_dir_for_init", default="")
    text("--output", default="")
    return parser.parse_args(arguments)


def reader_parameters(options):
    pairs = (part.partition("=") for part in options.data_reader_params.split(";") if part.strip())
    return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}


def log(text):
    print(text, flush=True)


def _truth(text):
    if text.lower() in ("true", "1", "yes"):
        return True
    if text.lower() in ("false", "0", "no"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
