"""`undrift predict` reads every file that is wrong in some way, or refuses it in one known line."""

import pytest

from tests.helpers.commands import predict
from tests.helpers.hostile_files import (
    describe_outcome,
    list_changed_files,
    list_written_files,
    read_expected,
)


@pytest.mark.slow
def test_every_hostile_file_is_read_or_refused_in_a_known_line(folder, undrift, model):
    outcomes = {}
    for name, content in (list_written_files() | list_changed_files(12)).items():
        (folder / name).write_bytes(content)
        status, _, said = undrift(*predict(model, input=name))
        outcomes[name] = describe_outcome(status, said)
        (folder / name).unlink()
    assert outcomes == read_expected()
