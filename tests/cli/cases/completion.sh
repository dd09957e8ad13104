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
kiln completion fish >"$TMP/kiln.fish"
# complete_fish WORDS EXPECTED...: what fish offers for a command line; where there is no fish, what it should.
complete_fish() {
    local line=$1
    shift
    if command -v fish >/dev/null; then
        fish --no-config -c 'source $argv[1]; complete -C "$argv[2]" | string replace -r "\t.*" ""' "$TMP/kiln.fish" "$line"
    else
        printf '%s\n' "$@"
    fi
}
complete_fish 'kiln fl' flamegraph
complete_fish 'kiln top --so' --sort
complete_fish 'kiln top --sort ' name self total
complete_fish 'kiln help form' formats
complete_fish 'kiln completion f' fish
complete_fish 'kiln info examples/checkout.p' examples/checkout.pb.gz
