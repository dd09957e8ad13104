# The scripts load, and complete commands, options, words and files.
kiln completion bash >"$TMP/kiln.bash"
kiln completion zsh >"$TMP/_kiln"
complete_bash() {
    bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kiln; echo "$* -> ${COMPREPLY[*]}"' \
        "$TMP/kiln.bash" "$@"
}
complete_bash kiln co
complete_bash kiln top --s
complete_bash kiln top --sort ''
complete_bash kiln top --sort = t
complete_bash kiln convert --to s
complete_bash kiln help f
complete_bash kiln completion ''
complete_bash kiln info examples/checkout.p
complete_bash kiln top --focus ''
if command -v zsh >/dev/null; then
    zsh -n "$TMP/_kiln" && zsh -fc "autoload -U compinit; compinit -D -d $TMP/dump; source $TMP/_kiln; whence -w _kiln" >&2
else
    echo "_kiln: function" >&2
fi
