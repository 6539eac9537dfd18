import pytest


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="device of torch that the torch tests run on, e.g. cuda")


@pytest.fixture
def torch_device(request):
    """Name of a device of torch."""
    return request.config.getoption("--device")


@pytest.fixture
def device(torch_device):
    """The same as an estimator's `device`."""
    return f"torch:{torch_device}"
