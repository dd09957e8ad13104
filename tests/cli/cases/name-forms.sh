# What functions are called: as given, or made of what the linker calls them.
printf 'main;_ZNSt6vectorIiSaIiEE9push_backERKi.cold 3\nmain;_RNCNvCs1234_7mycrate4main0B3_ 2\n' >"$TMP/p.txt"
for form in given short full linker; do
    echo "$form:"
    kiln top --names $form --wide "$TMP/p.txt" | tail -n +3
done
kiln top --names nice "$TMP/p.txt"; echo "exit $?"
