"""Sandboxes that begin and end while somebody works in them: whoever is inside finishes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from surelist.service.record import access
from tests.helpers.service import Server, web_client


@pytest.mark.slow
def test_a_sandbox_that_ends_in_the_middle_of_a_request_breaks_nothing(tmp_path):
    server = Server(tmp_path / "home")
    with web_client(base_url=server.url) as client:
        client.get("/")
        cookie = client.cookies["surelist"]
    form, cookies = {"csrf": access.csrf_token(cookie)}, {"surelist": cookie}

    def work(number: int) -> list[tuple[str, int]]:
        """One restarts the sandbox again and again, the others use it as pages do."""
        done = []
        with web_client(base_url=server.url, cookies=cookies) as client:
            for _ in range(6):
                answer = client.post("/sandbox", data=form)
                done.append(("/sandbox", answer.status_code))
                at = answer.headers.get("location", "/")
                columns = {**form, "score": "score", "label": "qualified", "id": "candidate"}
                for path, sent in ((at, columns), (f"{at}/promise", form), ("/labellings", form)):
                    done.append((path, client.post(path, data=sent).status_code))
                done += [(path, client.get(path).status_code) for path in (at, "/", "/kept", "/record")]
                if number % 2:
                    done.append(("leave", client.post("/sandbox/leave", data=form).status_code))
        return done

    with ThreadPoolExecutor(6) as pool:
        answers = [each for done in pool.map(work, range(6)) for each in done]
    log = server.stop()
    assert [each for each in answers if each[1] >= 500] == [], log[-2000:]
    assert not any((tmp_path / "home" / "sandboxes").glob("*"))
