"""Checks that a server answers as the Kubernetes API does. See ../README.md."""
