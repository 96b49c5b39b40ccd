// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/npy_header.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "drover/base/errors.h"

namespace drover::inline v1::shm {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kShortPreamble = 10;  // magic, two bytes of version, two of length: format 1.0
constexpr std::size_t kLongPreamble = 12;   // four of length: formats 2.0 and 3.0
constexpr std::size_t kMaxRank = 32;        // NumPy 1 cannot make more; NumPy 2 has 64
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();

/// nullopt for an overflow of 63 bits. Zero counts as one, as in NumPy, so that strides never overflow.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape, std::uint64_t item_size) {
  std::uint64_t size = item_size;
  bool empty = false;
  for (const std::uint64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(size, extent, &size)) return std::nullopt;
    if (size > kMaxSize) return std::nullopt;
  }
  return empty ? 0 : size;
}

std::string text_of(const std::vector<std::uint64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// Bytes of one element, or what is wrong with the type.
std::uint64_t item_size_of(std::string_view descr, const std::string& where) {
  const auto fail = [&](const char* problem) {
    throw Incompatible(where + " holds elements of the type '" + std::string(descr.substr(0, 40)) + "', " + problem);
  };
  if (descr.size() < 2) fail("which is none of NumPy's");
  const char order = descr[0], kind = descr[1];
  if (kind == 'O') fail("which are Python objects and mean nothing outside of Python: save numbers");
  if (order == '>') {
    fail("whose byte order is big-endian: convert it in Python by a.astype(a.dtype.newbyteorder('<'))");
  }
  if ((order != '<' && order != '|') || std::string_view("biufcmMSUV").find(kind) == std::string_view::npos) {
    fail("which is none of NumPy's");
  }
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), size);
  const std::string_view unit(end, static_cast<std::size_t>(descr.data() + descr.size() - end));
  const bool time = kind == 'm' || kind == 'M';
  const bool unit_fits = unit.empty() || (time && unit.front() == '[' && unit.back() == ']');
  if (error != std::errc() || !unit_fits || size > std::numeric_limits<std::int32_t>::max()) {
    fail("which is none of NumPy's");
  }
  if (size == 0) fail("which have no size");
  return kind == 'U' ? 4 * size : size;
}

/// The Python literal in a header: a dict of three known keys. One pass, never beyond the end of the text.
class Literal {
 public:
  Literal(std::string_view text, const std::string& where) : left_(text), where_(where) {}

  NpyHeader read() {
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!left_.empty()) fail("something follows its dictionary");
    if (!descr_ || !fortran_ || !shape_) fail("it lacks one of the keys descr, fortran_order and shape");
    return {std::move(*descr_), *fortran_, std::move(*shape_), 0};
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Incompatible(where_ + " has a damaged .npy header: " + problem);
  }

  void skip_blanks() {
    const auto is_blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v'); };
    left_.remove_prefix(
        static_cast<std::size_t>(std::find_if_not(left_.begin(), left_.end(), is_blank) - left_.begin()));
  }
  bool accept(char wanted) {
    skip_blanks();
    if (left_.empty() || left_.front() != wanted) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(std::string("'") + wanted + "' is missing");
  }

  void read_entry() {
    const std::string key = read_string();
    expect(':');
    if (key == "descr" && !descr_) {
      descr_ = read_descr();
    } else if (key == "fortran_order" && !fortran_) {
      fortran_ = read_bool();
    } else if (key == "shape" && !shape_) {
      shape_ = read_shape();
    } else {
      fail("a key is unknown or there twice");
    }
  }

  std::string read_string() {
    skip_blanks();
    const char quote = left_.empty() ? '\0' : left_.front();
    if (quote != '\'' && quote != '"') fail("a text in quotes is missing");
    const std::size_t end = left_.find(quote, 1);
    if (end == std::string_view::npos) fail("a text has no end");
    const std::string_view text = left_.substr(1, end - 1);
    if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '\\'; })) {
      fail("a text has unusual letters");
    }
    left_.remove_prefix(end + 1);
    return std::string(text);
  }

  std::string read_descr() {
    skip_blanks();
    if (!left_.empty() && (left_.front() == '[' || left_.front() == '(')) {
      throw Incompatible(where_ +
                         " holds structured elements (several fields each), which Drover does not read: save "
                         "each field as an array of its own");
    }
    return read_string();
  }

  bool read_bool() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!left_.starts_with(word)) continue;
      left_.remove_prefix(word.size());
      return word == "True";
    }
    fail("fortran_order is neither True nor False");
  }

  std::vector<std::uint64_t> read_shape() {
    std::vector<std::uint64_t> shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == kMaxRank) fail("its shape has more than 32 dimensions");
      shape.push_back(read_extent());
      if (accept(',')) continue;
      if (shape.size() == 1) fail("its shape is a number in brackets, not a tuple");
      expect(')');
      break;
    }
    return shape;
  }

  std::uint64_t read_extent() {
    skip_blanks();
    std::uint64_t extent = 0;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), extent);
    if (error == std::errc::result_out_of_range || extent > kMaxSize) fail("an extent of its shape is too large");
    if (error != std::errc()) fail("an extent of its shape is no number, or a negative one");
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    if (!left_.empty() && left_.front() == 'L') left_.remove_prefix(1);  // a long of Python 2
    return extent;
  }

  std::string_view left_;
  const std::string& where_;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::uint64_t>> shape_;
};

/// Where the literal lies in the file.
struct Extent {
  std::size_t begin, size;
};

Extent find_literal(std::span<const std::byte> beginning, const std::string& where) {
  if (beginning.size() < kMagic.size() || std::memcmp(beginning.data(), kMagic.data(), kMagic.size()) != 0) {
    throw Incompatible(where + " is no .npy file: it does not begin with NumPy's mark");
  }
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(beginning[i]); };
  if (beginning.size() < kLongPreamble) throw Incompatible(where + " has a .npy header that is cut off");
  const std::size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    throw Incompatible(where + " is a .npy file of format " + std::to_string(major) + "." + std::to_string(minor) +
                       "; Drover reads 1.0, 2.0 and 3.0");
  }
  const std::size_t low = byte(8) | byte(9) << 8;
  const Extent found =
      major == 1 ? Extent{kShortPreamble, low} : Extent{kLongPreamble, low | byte(10) << 16 | byte(11) << 24};
  if (found.begin + found.size > kMaxNpyHeaderSize) {
    throw Incompatible(where + " has a .npy header of " + std::to_string(found.size) +
                       " bytes, more than any array of " + "numbers needs");
  }
  if (found.size > beginning.size() - found.begin) {
    throw Incompatible(where + " has a .npy header that is cut off: it should have " + std::to_string(found.size) +
                       " bytes");
  }
  return found;
}

}  // namespace

std::uint64_t NpyHeader::item_size() const { return item_size_of(descr, "the array"); }

std::uint64_t NpyHeader::data_size() const {
  const std::uint64_t item = item_size();
  if (const auto size = bytes_of(shape, item)) return *size;
  throw InvalidArgument("an array of shape " + text_of(shape) + " with elements of " + std::to_string(item) +
                        " bytes has more bytes than fit in 63 bits");
}

std::vector<std::byte> format_npy_header(const NpyHeader& header) {
  if (header.shape.size() > kMaxRank || header.descr.find_first_of("'\\\n") != std::string::npos) {
    throw InvalidArgument("an array of type " + header.descr + " and shape " + text_of(header.shape) +
                          " has no .npy header: NumPy takes up to 32 dimensions");
  }
  static_cast<void>(header.data_size());  // throws for what no array can have
  const std::string text = "{'descr': '" + header.descr +
                           "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
                           ", 'shape': " + text_of(header.shape) + ", }";
  constexpr std::size_t room = kNpyHeaderSize - kShortPreamble;
  if (text.size() >= room) throw InvalidArgument("the type " + header.descr.substr(0, 40) + "... has too long a name");

  std::vector<std::byte> page(kNpyHeaderSize, std::byte{' '});
  std::memcpy(page.data(), kMagic.data(), kMagic.size());
  page[6] = std::byte{1};
  page[7] = std::byte{0};
  page[8] = std::byte{room & 0xff};
  page[9] = std::byte{room >> 8};
  std::memcpy(page.data() + kShortPreamble, text.data(), text.size());
  page.back() = std::byte{'\n'};
  return page;
}

NpyHeader parse_npy_header(std::span<const std::byte> beginning, const std::string& where) {
  const Extent literal = find_literal(beginning, where);
  const auto* text = reinterpret_cast<const char*>(beginning.data()) + literal.begin;
  NpyHeader header = Literal({text, literal.size}, where).read();
  header.data_offset = literal.begin + literal.size;
  if (!bytes_of(header.shape, item_size_of(header.descr, where))) {
    throw Incompatible(where + " says its shape is " + text_of(header.shape) + " of " + header.descr +
                       ", which is more than fits in 63 bits");
  }
  return header;
}

}  // namespace drover::inline v1::shm
