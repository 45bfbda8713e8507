"""The command `maniple completion`: prints the script that completes commands and options in a shell."""

import click

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "maniple"
_VARIABLE = "_MANIPLE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    Completes commands, options, and the values of those that have a fixed list. The script calls maniple itself, so
    that it need not be made again after an update.

    \b
    Examples:
      source <(maniple completion bash)                               # this shell
      maniple completion bash > ~/.local/share/bash-completion/completions/maniple
      maniple completion zsh > ~/.zfunc/_maniple                      # with fpath+=~/.zfunc before compinit
      maniple completion fish > ~/.config/fish/completions/maniple.fish

    Exit code: 0; 2 if usage is bad.
    """
    from click.shell_completion import get_completion_class

    from maniple.cli.main import main

    known = get_completion_class(shell)
    assert known is not None
    # Not known.source(): that of bash starts a shell to check its version, wherever the script is going to be used.
    completion = known(main, {}, PROGRAM, _VARIABLE)
    click.echo(completion.source_template % completion.source_vars())
