# On a terminal: colours, tables cut to its width, and no bytes.
command -v script >/dev/null || { echo "script(1) is not installed"; exit 77; }
on_terminal() { script -qec "stty cols 72; $*" /dev/null | tr -d '\r'; }
export TERM=xterm
on_terminal kiln top -n 3 examples/checkout.pb.gz | cat -v
NO_COLOR=1 on_terminal kiln top -n 2 examples/checkout.pb.gz | cat -v
on_terminal kiln convert --to otlp examples/checkout.pb.gz
