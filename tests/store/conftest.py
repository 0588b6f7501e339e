from functools import partial
from pathlib import Path

import pytest

from tests.store.backends import BACKENDS, Open

pytest.register_assert_rewrite("tests.store.contract_suite")


@pytest.fixture(params=BACKENDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return partial(BACKENDS[request.param], tmp_path)
