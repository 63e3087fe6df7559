"""Settings shared by all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Keras asks for TensorFlow where it is not told otherwise.
os.environ.setdefault("KERAS_BACKEND", "jax")

# No deadline: the first call of a kernel compiles it. "ci" and "quick" always draw the same examples, so that a change is judged by what
# it changed; HYPOTHESIS_PROFILE=default draws new ones.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=40, print_blob=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
