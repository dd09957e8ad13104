# Names that are wide, long, or try to drive the terminal.
printf 'main;日本語の関数 7\nmain;\033[31mred\007 5\nmain;naïve_ünïcode 3\nmain;%0150d 2\n' 0 >"$TMP/n.folded"
kiln top --from collapsed "$TMP/n.folded" | cat -v | sed 's/M-[^ ]*/(bytes)/g' | cut -c1-90
kiln top --from collapsed "$TMP/n.folded" | head -3
