# The demo runs to its end, fails nothing, and says what it should.
bash "$SOURCE_DIR/examples/demo.sh" --warpfst "$WARPFST" --work "$PWD/work" > demo.txt 2>&1 || { tail -20 demo.txt; exit 1; }
grep -q "8 of 8 as expected" demo.txt
grep -q "WER 37.50%" demo.txt
grep -Eq "^ *[0-9.]+ - +[0-9.]+ +[A-Z']+ +#" demo.txt # words with times
