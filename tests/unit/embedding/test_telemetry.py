"""The model's runtime records no usage events, neither in files nor over the network."""

import os
import subprocess
import sys

LOAD = "from memgraph.embedding import default_embedder; default_embedder().embed_query('x')"


def test_loading_the_model_leaves_nothing_in_the_home(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"XDG_CACHE_HOME": str(home / "cache"), "XDG_CONFIG_HOME": str(home / "config")}
    subprocess.run([sys.executable, "-c", LOAD], env=environment, check=True, cwd=home)

    assert list(home.rglob("*")) == []
