import subprocess
import sys


def test_it_is_importable_without_the_test_tools() -> None:
    code = "import sys; import bridge.channel.testing.fakes.feishu; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == 0
