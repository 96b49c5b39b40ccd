#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows what clang-format would change in the C++ files. With --fix it changes them.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t folders < <(ls -d drover tests benchmarks examples 2>/dev/null)
mapfile -t files < <(find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) | sort)
if [ "${1:-}" = --fix ]; then
  for file in "${files[@]}"; do # those that are right keep their times, or all would be built anew
    clang-format "$file" | cmp -s - "$file" || clang-format -i "$file"
  done
  exit
fi

status=0
for file in "${files[@]}"; do
  clang-format "$file" | diff -u --label "$file" --label "$file (formatted)" "$file" - || status=1
done
[ "$status" -eq 0 ] || echo "tools/check_format.sh --fix makes these changes"
exit "$status"
