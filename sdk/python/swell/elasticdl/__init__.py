"""ElasticDL's jobs on PyTorch: a master that keeps the model, workers that come and go.

`python3 -m swell.elasticdl.master` and `… .worker` are what the pods of an ElasticDLJob run; `elasticdl train`
makes such jobs. A user writes a model file (see model.py for what it may contain) and nothing else.

What always holds: a record counts as trained in the very step in which its gradient goes into the model, so each
record is trained exactly once per epoch whatever happens to workers; the model and the position in the data are
saved together.
"""
