"""A build packs what is here, and nothing that an earlier version left in ``build/``, as setuptools would."""

import shutil
from pathlib import Path

from setuptools import setup

shutil.rmtree(Path(__file__).parent / "build" / "lib", ignore_errors=True)
setup()
