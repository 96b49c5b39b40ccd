#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_fail.sh FOLDER COMPILER [FLAG...]: each .cc file there must be refused by the compiler with the text after "// expect: ",
# and the compiler must not say more than a user will read.
cd "$1" || exit 2
shift
max_lines=25
failed=0
for file in *.cc; do
  expected=$(sed -n 's|^// expect: ||p' "$file")
  if output=$("$@" -std=c++20 -fsyntax-only "$file" 2>&1); then
    echo "$file: compiles, but should not"
    failed=1
    continue
  fi
  lines=$(echo "$output" | wc -l)
  case $output in
    *"$expected"*) ;;
    *) echo "$file: does not say: $expected" && echo "$output" && failed=1 ;;
  esac
  if [ "$lines" -gt $max_lines ]; then
    echo "$file: $lines lines of errors, more than $max_lines" && echo "$output" && failed=1
  fi
done
exit $failed
