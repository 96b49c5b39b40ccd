#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh SOURCE_DIR BUILD_DIR CXX
# Installs BUILD_DIR into a folder, moves it, and builds programs against it: by CMake, by pkg-config, and with clang++ too.
set -euo pipefail
source_dir=$1 build_dir=$2 cxx=$3
work=$build_dir/consumer
project=$source_dir/tests/consumer/project
rm -rf "$work"

cmake --install "$build_dir" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"

# build_project SOURCE NAME: by CMake, as a user would
build_project() {
  echo "CMake: $2"
  cmake -S "$1" -B "$work/$2" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
  cmake --build "$work/$2" -- --quiet
}
build_project "$project" consumer
"$work/consumer/consumer"
build_project "$source_dir/examples" examples
for source in "$source_dir"/examples/*.cc; do
  [ -x "$work/examples/$(basename "$source" .cc)" ] || { echo "examples/CMakeLists.txt does not build $source"; exit 1; }
done

PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name drover.pc)")
export PKG_CONFIG_PATH
for compiler in "$cxx" clang++; do
  echo "pkg-config: the consumer with $(basename "$compiler")"
  # shellcheck disable=SC2046  # the flags are words
  "$compiler" -std=c++20 $(pkg-config --cflags drover) "$project/main.cc" $(pkg-config --libs drover) -o "$work/by_pkg_config"
  "$work/by_pkg_config"
done

if [ -x "$work/prefix/bin/drover" ]; then
  echo "the installed program"
  "$work/prefix/bin/drover" --version
fi
