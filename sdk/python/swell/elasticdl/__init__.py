"""ElasticDL's jobs on PyTorch: a master that keeps the model, and workers that come and go.

The pods of an ElasticDLJob run `python3 -m swell.elasticdl.master` and `python3 -m swell.elasticdl.worker`; `elasticdl
train` makes such jobs. The user writes a model file (model.py lists what it may contain) and nothing else.

What always holds: a record counts as trained when its gradient is added to the model, so each record is trained exactly
once per epoch, whatever happens to workers. The model and the position in the data are saved together.
"""
