"""The server of `undrift label`: its API, and whom it answers."""

import errno
import hmac
import http.client
import json
import socket
import threading
import time

import pytest

from undrift.app.label_server import MOST_BYTES, MOST_UNCHECKED, LabelServer
from undrift.app.labelling import LabelSession


@pytest.fixture
def start(adapted, tmp_path):
    """Start a server of a session; it ends with the test."""
    running = []

    def serve(**options):
        adapter, texts, _ = adapted
        own = LabelServer(LabelSession(adapter, texts, tmp_path / "labels.csv", **options), "kitchen")
        thread = threading.Thread(target=own.serve_forever)
        thread.start()
        running.append((own, thread))
        return own

    yield serve
    for own, thread in running:
        own.learner.shutdown()
        own.shutdown()
        thread.join()
        own.server_close()


@pytest.fixture
def server(start):
    return start()


@pytest.fixture
def held(start, monkeypatch):
    """A server that learns in the background, once `may_learn` is set; `studies` has a line for each time."""
    own = start(learns_at_once=False)
    own.may_learn, own.studies, study = threading.Event(), [], own.session.study

    def study_later():
        own.studies.append(len(own.session.answers))
        learnt = study()
        assert own.may_learn.wait(30)
        return learnt

    monkeypatch.setattr(own.session, "study", study_later)
    yield own
    own.may_learn.set()


def label_rows(server, truth, n):
    """Label rows as a script would; returns the states."""
    states = []
    for _ in range(n):
        row = ask(server, "/api/next")[1]
        given = {"row": row["row"], "label": truth[row["text"]]}
        states.append(ask(server, "/api/label", given)[1])
    return states


def wait_until_learnt(server):
    deadline = time.monotonic() + 300
    while (state := ask(server, "/api/state")[1])["is_learning"] and time.monotonic() < deadline:
        time.sleep(0.5)
    return state


def ask(server, path, body=None, *, token=True, **headers):
    """Ask as a script would; returns the status, and what JSON says."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    given = {"X-Undrift-Token": server.token} if token is True else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, data, given)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    is_json = response.getheader("Content-Type").startswith("application/json")
    return response.status, json.loads(content) if is_json else content.decode()


def test_a_script_labels_by_the_api_with_the_token(server, adapted, spy):
    truth = adapted[2]
    for n in range(1, 7):
        status, row = ask(server, "/api/next")
        assert status == 200
        status, state = ask(server, "/api/label", {"row": row["row"], "label": truth[row["text"]]})
        assert (status, state["n_labels"]) == (200, n)
    assert ask(server, "/api/state") == (200, state)
    assert 0 <= state["error"]["low"] <= state["error"]["error"] <= state["error"]["high"] <= 1
    assert sum(state["shares"].values()) == pytest.approx(1)
    assert set(state["changed"]) == {"n", "of", "rows"}
    status, undone = ask(server, "/api/undo", {})
    assert (undone["row"], undone["n_labels"]) == (row["row"], 5)
    shown = ask(server, "/api/next")[1]
    assert (shown["row"], shown["is_question"]) == (row["row"], False), "the row that was undone"
    assert ask(server, f"/api/state?token={server.token}", token=False)[0] == 200
    assert len(server.token) >= 32
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, "/api/state", Host=f"localhost:{server.server_port}")[0] == 200
    assert server.address == f"http://127.0.0.1:{server.server_port}/?token={server.token}"
    seen = spy(hmac, "compare_digest")
    assert ask(server, "/api/state")[0] == 200
    assert seen == [(server.token.encode(), server.token.encode())]


def test_answers_are_saved_while_labels_are_learnt(held, adapted):
    states = label_rows(held, adapted[2], 12)
    assert [state["n_labels"] for state in states] == [*range(1, 13)]
    assert [state["is_learning"] for state in states] == [False] * 4 + [True] * 8
    assert [state["n_learnt"] for state in states] == [0] * 12
    assert [state["error"].get("n", 0) for state in states] == [0] * 5 + [*range(1, 8)]
    assert len(held.session.file.path.read_text().splitlines()) == 13
    assert held.studies == [5], "one learning at a time"
    held.may_learn.set()
    state = wait_until_learnt(held)
    assert (state["n_learnt"], held.studies) == (12, [5, 12]), "then those that came meanwhile"
    session = held.session
    again = LabelSession(adapted[0], session.documents, session.file.path)
    assert again._codes.tolist() == session._codes.tolist(), "as if they were learnt at once"
    assert again._predicted == session._predicted


def test_an_answer_that_is_withdrawn_while_it_is_learnt_is_forgotten(held, adapted):
    held.may_learn.set()
    label_rows(held, adapted[2], 5)
    assert wait_until_learnt(held)["n_learnt"] == 5
    held.may_learn.clear()
    assert label_rows(held, adapted[2], 5)[-1]["is_learning"]
    undone = ask(held, "/api/undo", {})[1]
    assert (undone["n_labels"], undone["n_learnt"], undone["error"]["n"]) == (9, 5, 4)
    held.may_learn.set()
    state = wait_until_learnt(held)
    assert (state["n_learnt"], state["error"]["n"]) == (9, 4)
    assert held.studies == [5, 10, 9]
    assert undone["row"] not in held.session._predicted


def test_a_learning_that_fails_is_said_once_and_tried_again(held, adapted, monkeypatch):
    study = held.session.study

    def fail():
        raise ValueError("no memory is left")

    monkeypatch.setattr(held.session, "study", fail)
    label_rows(held, adapted[2], 5)
    held.learner.submit(bool).result()  # comes after the learning
    assert ask(held, "/api/state") == (400, {"error": "no memory is left"})
    monkeypatch.setattr(held.session, "study", study)
    held.may_learn.set()
    assert wait_until_learnt(held)["n_learnt"] == 5


def test_a_finished_session_has_learnt_what_it_began(adapted, tmp_path, monkeypatch):
    adapter, texts, truth = adapted
    session = LabelSession(adapter, texts, tmp_path / "labels.csv", learns_at_once=False)
    study = session.study
    monkeypatch.setattr(session, "study", lambda: time.sleep(0.5) or study())
    own = LabelServer(session, "kitchen")
    for _ in range(5):
        row = session.next_row()
        session.answer(row["row"], truth[row["text"]])
    assert own.state()["is_learning"]
    own.is_finished.set()
    with own.serve(opens_browser=False):
        assert session.state()["n_learnt"] == 5
        assert own.state()["is_learning"] is False


def test_without_the_token_nothing_is_answered(server):
    for path in ("/", "/api/state", "/api/next", "/nothing"):
        for token in ("", "x", server.token[:-1], server.token + "x", "é"):
            status, said = ask(server, path, token=False, X_Undrift_Token=token.encode())
            assert (status, "token" in said["error"]) == (403, True)
    assert ask(server, "/api/label", {"row": 0, "label": "positive"}, token=False)[0] == 403
    assert server.session.answers == {}


def test_other_host_names_and_origins_are_not_answered(server):
    """A name that another site lets point to this machine; a page of another site."""
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80", ""):
        assert ask(server, "/api/state", Host=host)[0] == 403
    body = {"row": server.session.next_row()["row"], "label": "positive"}
    for origin in ("http://evil.example", "null", "https://127.0.0.1:{}", "http://127.0.0.1"):
        status, _ = ask(server, "/api/label", body, Origin=origin.format(server.server_port))
        assert (status, server.session.answers) == (403, {})
    own = f"http://127.0.0.1:{server.server_port}"
    assert ask(server, "/api/label", body, Origin=own)[0] == 200


def test_bad_bodies_are_refused(server):
    deep = b'{"row": ' + b"[" * 900 + b"]" * 900 + b"}"
    bodies = [b"{}", b"[]", b"{", b'"x"', b"\xff", b'{"row": 0', b'{"row": "a", "label": "positive"}']
    for body in [*bodies, b"[" * 30_000, b'{"row": ' * 8_000, deep, b'{"row": {"a": 0}}']:
        status, said = ask(server, "/api/label", body)
        assert status == 400
        assert said["error"]
    assert server.session.answers == {}


def test_a_request_is_refused_before_its_body_arrives(server):
    token = f"X-Undrift-Token: {server.token}"
    for length, more, status in (
        (100, "A: b", 403),
        (100, "X-Undrift-Token: wrong", 403),
        (MOST_BYTES + 1, token, 413),
        ("9" * 5000, token, 413),
        (-1, token, 413),
    ):
        with socket.create_connection(server.server_address, timeout=5) as client:
            head = f"POST /api/label HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
            client.sendall(f"{head}Content-Length: {length}\r\n{more}\r\n\r\n".encode())
            answer = client.makefile("rb").read().decode()
        assert answer.split(" ")[1] == str(status)
        assert "error" in answer


def test_connections_without_a_token_hold_few_threads_and_nobody_waits(server):
    before = threading.active_count()
    held = [socket.create_connection(server.server_address, timeout=5) for _ in range(200)]
    for client in held:
        client.sendall(b"POST /api/label HTTP/1.1\r\n")
    assert ask(server, "/api/state")[0] == 200
    deadline = time.monotonic() + 20
    while threading.active_count() - before > MOST_UNCHECKED and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() - before <= MOST_UNCHECKED
    assert ask(server, "/api/state")[0] == 200
    for client in held:
        client.close()


def test_unknown_addresses_and_methods_are_refused(server):
    assert ask(server, "/api/nothing")[0] == 404
    assert ask(server, "/api/next", {})[0] == 404
    assert ask(server, "/../../etc/passwd")[0] == 404
    assert ask(server, "/api/label", b" " * (MOST_BYTES + 1))[0] == 413


def test_the_page_names_its_own_server_alone(server):
    status, page = ask(server, "/")
    assert status == 200
    assert "connect-src &#39;self&#39;" in page or "connect-src 'self'" in page
    assert server.token not in page
    assert "http://" not in page
    assert "https://" not in page


def test_a_full_disk_is_said_and_nothing_is_lost(server, fail, monkeypatch):
    row = server.session.next_row()["row"]
    fail("os.replace", OSError(errno.ENOSPC, "No space left on device"))
    status, said = ask(server, "/api/label", {"row": row, "label": "positive"})
    assert status == 507
    assert "No space left on device" in said["error"]
    assert ask(server, "/api/state")[1]["n_labels"] == 0
    monkeypatch.undo()
    assert ask(server, "/api/label", {"row": row, "label": "positive"})[0] == 200


def test_a_finished_session_takes_no_more_answers(server):
    row = server.session.next_row()["row"]
    server.is_finished.set()
    status, said = ask(server, "/api/label", {"row": row, "label": "positive"})
    assert (status, said["error"]) == (409, "the session is finished: run undrift label again")
    assert ask(server, "/api/state")[1]["n_labels"] == 0


def test_an_answer_that_came_before_finish_is_learnt_before_files_are_written():
    done, has_begun = [], threading.Event()

    class SlowSession:
        def answer(self, row, label, tab):
            has_begun.set()
            server.is_finished.wait(10)
            time.sleep(0.3)
            done.append("learnt")

        def state(self):
            return {}

    def finish():
        has_begun.wait(10)
        done.append(ask(server, "/api/finish", {}))

    server = LabelServer(SlowSession(), "kitchen")
    label = threading.Thread(target=ask, args=(server, "/api/label", {"row": 0, "label": "positive"}))
    threads = [label, threading.Thread(target=finish)]
    for thread in threads:
        thread.start()
    with server.serve(opens_browser=False):
        server.written = ["labels.csv"]
        done.append("written")
    for thread in threads:
        thread.join()
    assert done == ["learnt", "written", (200, {"written": ["labels.csv"]})]


def test_many_answers_at_once_are_all_saved(server):
    rows = server.session._order[:24]
    threads = [
        threading.Thread(target=ask, args=(server, "/api/label", {"row": row, "label": "negative"}))
        for row in rows
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.session.file.path.read_text().splitlines()) == 25
    assert set(server.session.answers) == set(rows)
