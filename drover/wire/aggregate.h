// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace drover::inline v1::wire {

/// A list of types, to be passed as a value.
template <class... T>
struct TypeList {};

inline constexpr std::size_t kMaxFields = 32;

namespace detail {

/// Initialises a field of any type; only ever named, never run.
template <std::size_t>
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): stands for every type
};

/// Initialises only a base class of T.
template <class T>
struct AnyBaseOf {
  template <class Base>
  // NOLINTNEXTLINE(google-explicit-constructor): stands for every base
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const;
};

template <class T, std::size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { T{AnyField<I>{}...}; };
}

template <class T, std::size_t... I>
consteval bool takes_base_first(std::index_sequence<I...>) {
  return requires { T{AnyBaseOf<T>{}, AnyField<I>{}...}; };
}

// `{}` stands for exactly one field, also when that is a C array: T has as many fields as lists of this shape are
// valid. No pack expands to empty braces, hence a line for each count.
// clang-format off
template <class T>
consteval std::size_t count_by_braces() {
  return 0
    + requires{T{{}};}
    + requires{T{{},{}};}
    + requires{T{{},{},{}};}
    + requires{T{{},{},{},{}};}
    + requires{T{{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};}
    + requires{T{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}};};
}
// clang-format on

/// For aggregates with a field that has no default constructor. A C array beside such a field is not understood.
template <class T, std::size_t N = kMaxFields + 1>
consteval std::size_t count_by_values() {
  if constexpr (N == 0 || takes<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return count_by_values<T, N - 1>();
  }
}

template <class T>
consteval std::size_t count_fields() {
  if constexpr (std::is_empty_v<T>) {
    return 0;
  } else if constexpr (requires { T{}; }) {
    return count_by_braces<T>();
  } else {
    return count_by_values<T>();
  }
}

}  // namespace detail

/// The number of fields of an aggregate class; kMaxFields + 1 when it has more than kMaxFields.
template <class T>
inline constexpr std::size_t field_count = detail::count_fields<T>();

/// An aggregate class that visit_fields() can take apart: up to kMaxFields fields, no base class, no const or reference
/// fields (it must be assignable), and not something with a tuple protocol, for which structured bindings mean
/// something else.
template <class T>
concept PlainAggregate = std::is_class_v<T> && std::is_aggregate_v<T> && std::is_move_assignable_v<T> && !requires {
  std::tuple_size<T>::value;
}
&&(std::is_empty_v<T> ||
   (field_count<T> >= 1 && field_count<T> <= kMaxFields &&
    !detail::takes_base_first<T>(std::make_index_sequence < field_count<T> == 0 ? 0 : field_count<T> - 1 > {})));

/// Calls visit(field...) with all fields of a PlainAggregate as lvalues, and returns its result. Bit-fields do not
/// compile.
// clang-format off
template <class T, class Visit>
// NOLINTNEXTLINE(readability-function-size): a line for each number of fields
constexpr decltype(auto) visit_fields(T& object, Visit&& visit) {
  constexpr std::size_t fields = field_count<std::remove_const_t<T>>;
  if constexpr (fields == 0) { return visit(); }
  if constexpr (fields == 1) { auto& [a] = object; return visit(a); }
  if constexpr (fields == 2) { auto& [a,b] = object; return visit(a,b); }
  if constexpr (fields == 3) { auto& [a,b,c] = object; return visit(a,b,c); }
  if constexpr (fields == 4) { auto& [a,b,c,d] = object; return visit(a,b,c,d); }
  if constexpr (fields == 5) { auto& [a,b,c,d,e] = object; return visit(a,b,c,d,e); }
  if constexpr (fields == 6) { auto& [a,b,c,d,e,f] = object; return visit(a,b,c,d,e,f); }
  if constexpr (fields == 7) { auto& [a,b,c,d,e,f,g] = object; return visit(a,b,c,d,e,f,g); }
  if constexpr (fields == 8) { auto& [a,b,c,d,e,f,g,h] = object; return visit(a,b,c,d,e,f,g,h); }
  if constexpr (fields == 9) { auto& [a,b,c,d,e,f,g,h,i] = object; return visit(a,b,c,d,e,f,g,h,i); }
  if constexpr (fields == 10) { auto& [a,b,c,d,e,f,g,h,i,j] = object; return visit(a,b,c,d,e,f,g,h,i,j); }
  if constexpr (fields == 11) { auto& [a,b,c,d,e,f,g,h,i,j,k] = object; return visit(a,b,c,d,e,f,g,h,i,j,k); }
  if constexpr (fields == 12) { auto& [a,b,c,d,e,f,g,h,i,j,k,l] = object; return visit(a,b,c,d,e,f,g,h,i,j,k,l); }
  if constexpr (fields == 13) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m] = object; return visit(a,b,c,d,e,f,g,h,i,j,k,l,m); }
  if constexpr (fields == 14) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n); }
  if constexpr (fields == 15) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o); }
  if constexpr (fields == 16) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p); }
  if constexpr (fields == 17) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q); }
  if constexpr (fields == 18) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r); }
  if constexpr (fields == 19) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s); }
  if constexpr (fields == 20) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t); }
  if constexpr (fields == 21) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u); }
  if constexpr (fields == 22) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v); }
  if constexpr (fields == 23) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w); }
  if constexpr (fields == 24) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x); }
  if constexpr (fields == 25) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y); }
  if constexpr (fields == 26) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z); }
  if constexpr (fields == 27) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A); }
  if constexpr (fields == 28) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B); }
  if constexpr (fields == 29) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C); }
  if constexpr (fields == 30) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D); }
  if constexpr (fields == 31) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E); }
  if constexpr (fields == 32) { auto& [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F] = object;
                     return visit(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F); }
}
// clang-format on

/// The types of the fields, as TypeList<Field...>.
template <PlainAggregate T>
using FieldTypes =
    decltype(visit_fields(std::declval<T&>(), []<class... Field>(Field&...) { return TypeList<Field...>{}; }));

}  // namespace drover::inline v1::wire
