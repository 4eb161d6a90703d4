// What a compiler knows of a declaration, printed as one line of JSON. It stands behind the vendor's declarations, which
// may have declared anything of the C library in their own way: so nothing of a library is used but printf.
extern "C" int printf(const char *, ...);

namespace nbxrt_probe {

template <class T> struct bare { using type = T; };
template <class T> struct bare<const T> : bare<T> {};
template <class T> struct bare<volatile T> : bare<T> {};
template <class T> struct bare<const volatile T> : bare<T> {};

template <class T> struct referred { using type = T; };
template <class T> struct referred<T &> { using type = T; };

enum which { none, is_void, is_function, is_pointer, is_array, is_enum, is_float, is_integer, is_struct };
constexpr const char *names[] = {"", "void", "function", "pointer", "array", "enum", "float", "integer", "struct"};

template <class T> constexpr which kind = __is_class(T) || __is_union(T) ? is_struct : __is_enum(T) ? is_enum : is_integer;
template <> constexpr which kind<void> = is_void;
template <> constexpr which kind<float> = is_float;
template <> constexpr which kind<double> = is_float;
template <> constexpr which kind<long double> = is_float;
template <class T> constexpr which kind<T *> = is_pointer;
template <class T, unsigned long N> constexpr which kind<T[N]> = is_array;
template <class T> constexpr which kind<T[]> = is_array;
template <class R, class... A> constexpr which kind<R(A...)> = is_function;
template <class R, class... A> constexpr which kind<R(A..., ...)> = is_function;
template <class R, class... A> constexpr which kind<R(A...) noexcept> = is_function;

template <class T, bool = kind<T> == is_enum> struct number_of { using type = T; };
template <class T> struct number_of<T, true> { using type = __underlying_type(T); };

template <class T, which = kind<T>> struct sign { static constexpr bool value = false; };
template <class T> struct sign<T, is_integer> { static constexpr bool value = T(-1) < T(1); };
template <class T> struct sign<T, is_enum> { static constexpr bool value = sign<typename number_of<T>::type>::value; };

template <class T> constexpr unsigned long size_or_0(decltype(sizeof(T)) *) { return sizeof(T); }
template <class T> constexpr unsigned long size_or_0(...) { return 0; }
template <class T> constexpr unsigned long size() {
    if constexpr (kind<T> == is_void || kind<T> == is_function) return 0;
    else return size_or_0<T>(0);
}

template <class T> struct target { using type = void; };
template <class T> struct target<T *> { using type = T; };

template <class T> void type() {
    using plain = typename bare<T>::type;
    printf("{\"kind\": \"%s\", \"bytes\": %lu, \"signed\": %s", names[kind<plain>], size<plain>(),
           sign<plain>::value ? "true" : "false");
    if constexpr (kind<plain> == is_pointer) {
        printf(", \"to\": ");
        type<typename target<plain>::type>();
    }
    printf("}");
}

template <class... A> struct list {};
inline void types(list<>) {}
template <class T> void types(list<T>) { type<T>(); }
template <class T, class U, class... A> void types(list<T, U, A...>) {
    type<T>();
    printf(", ");
    types(list<U, A...>());
}

template <class R, class... A> void say() {
    printf("\"kind\": \"function\", \"returns\": ");
    type<R>();
    printf(", \"takes\": [");
    types(list<A...>());
    printf("]");
}
template <class T> struct declared { static void tell() { printf("\"kind\": \"object\""); } };
template <class R, class... A> struct declared<R (*)(A...)> { static void tell() { say<R, A...>(); } };
template <class R, class... A> struct declared<R (*)(A...) noexcept> { static void tell() { say<R, A...>(); } };

template <class T> const char *spelled() { return __PRETTY_FUNCTION__; }

template <class T> void function(const char *key) {
    printf("{\"key\": \"%s\", ", key);
    declared<T>::tell();
    printf(", \"spelled\": \"%s\"}\n", spelled<T>());
}

inline void number(const char *key, long long value) { printf("{\"key\": \"%s\", \"value\": %lld}\n", key, value); }

template <class T> void field(const char *key, unsigned long offset) {
    printf("{\"key\": \"%s\", \"offset\": %lu, \"type\": ", key, offset);
    type<typename referred<T>::type>();
    printf("}\n");
}

}  // namespace nbxrt_probe
