from pathlib import Path

from bridge.store import contract, schema, steps
from bridge.store.contract import STEPS, Recover
from tests.store.values import ACCOUNT


def test_every_step_of_the_contract_is_taken() -> None:
    assert set(steps.TAKERS) == set(STEPS)
    classes = [one for one in vars(contract).values() if isinstance(one, type)]
    assert {one for one in classes if contract.Step in one.__bases__} == set(STEPS)


def test_a_step_goes_to_its_taker(tmp_path: Path) -> None:
    db = schema.open_file(tmp_path / "db")
    assert steps.take(db.cursor(), Recover(ACCOUNT)) == 0
    db.close()
