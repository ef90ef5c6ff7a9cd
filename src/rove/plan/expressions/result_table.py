"""What Spark says about the types of results. A test writes this file: `spark_results.py` says how."""

RESULTS = """\
aes_decrypt(string; string) -> binary
aes_decrypt(string; string; int|string) -> binary
aes_encrypt(string; string) -> binary
aes_encrypt(string; string; int|string) -> binary
any(boolean|string) -> boolean
any_value(any) -> $1
any_value(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean) -> $1
approx_percentile(int|double; int|double|string; int) -> $1
approx_percentile(string; int|double|decimal(10,2)|string; int) -> double
approx_top_k(bigint) -> array<struct<item:bigint,count:bigint>>
approx_top_k(boolean) -> array<struct<item:boolean,count:bigint>>
approx_top_k(date) -> array<struct<item:date,count:bigint>>
approx_top_k(double) -> array<struct<item:double,count:bigint>>
approx_top_k(int) -> array<struct<item:int,count:bigint>>
approx_top_k(string) -> array<struct<item:string,count:bigint>>
approx_top_k(timestamp) -> array<struct<item:timestamp,count:bigint>>
approx_top_k(bigint; int|double|string) -> array<struct<item:bigint,count:bigint>>
approx_top_k(date; int|double|string) -> array<struct<item:date,count:bigint>>
approx_top_k(double; int|double|string) -> array<struct<item:double,count:bigint>>
approx_top_k(int; int|double|string) -> array<struct<item:int,count:bigint>>
approx_top_k(string; int|double|string) -> array<struct<item:string,count:bigint>>
approx_top_k(timestamp; int|double|string) -> array<struct<item:timestamp,count:bigint>>
approx_top_k(int; int|string; int|string) -> array<struct<item:int,count:bigint>>
approx_top_k(string; int|string; int|string) -> array<struct<item:string,count:bigint>>
approx_top_k_accumulate(bigint) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:bigint,itemDataTypeDDL:string>
approx_top_k_accumulate(boolean) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:boolean,itemDataTypeDDL:string>
approx_top_k_accumulate(date) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:date,itemDataTypeDDL:string>
approx_top_k_accumulate(double) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:double,itemDataTypeDDL:string>
approx_top_k_accumulate(int) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:int,itemDataTypeDDL:string>
approx_top_k_accumulate(string) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:string,itemDataTypeDDL:string>
approx_top_k_accumulate(timestamp) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:timestamp,itemDataTypeDDL:string>
approx_top_k_accumulate(bigint; int|double|string) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:bigint,itemDataTypeDDL:string>
approx_top_k_accumulate(date; int|double|string) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:date,itemDataTypeDDL:string>
approx_top_k_accumulate(double; int|double|string) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:double,itemDataTypeDDL:string>
approx_top_k_accumulate(int; int|double|string) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:int,itemDataTypeDDL:string>
approx_top_k_accumulate(string; int|double|string) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:string,itemDataTypeDDL:string>
approx_top_k_accumulate(timestamp; int|double|string) -> struct<sketch:binary,maxItemsTracked:int,itemDataType:timestamp,itemDataTypeDDL:string>
array_agg(any) -> array<$1>
array_append(array<int>|array<string>; int|double|string) -> array<$2>
array_compact(array<int>|array<string>) -> $1
array_distinct(array<int>|array<string>) -> $1
array_join(array<int>|array<string>; string) -> $2
array_max(array<int>|array<string>) -> element $1
array_min(array<int>|array<string>) -> element $1
array_position(array<int>|array<string>; int|double|string) -> bigint
array_prepend(array<int>|array<string>; int|double|string) -> array<$2>
array_remove(array<int>|array<string>; int|double|string) -> array<$2>
array_repeat(int|bigint|double|string|date|timestamp|array<int>|array<string>; int) -> array<$1>
array_sort(array<int>|array<string>) -> $1
array_sort(array<int>|array<string>; int) -> $1
arrays_zip() -> array<struct<>>
assert_true(boolean) -> void
base64(string|binary) -> string
bin(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> string
bit_and(int|bigint) -> $1
bit_get(int|bigint; int|double|string) -> tinyint
bit_or(int|bigint) -> $1
bit_xor(int|bigint) -> $1
bitmap_and_agg(binary) -> $1
bitmap_bit_position(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> bigint
bitmap_bucket_number(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> bigint
bitmap_construct_agg(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> binary
bitmap_count(binary) -> bigint
bitmap_or_agg(binary) -> $1
bool_and(boolean|string) -> boolean
bool_or(boolean|string) -> boolean
cbrt(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> double
collation(string) -> $1
collect_list(any) -> array<$1>
collect_set(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp|array<int>|array<string>|struct<x:int>) -> array<$1>
collect_union(array<int>|array<string>) -> $1
conv(int|string; int|string; int|string) -> string
convert_timezone(int|bigint|double|string|date|timestamp; string) -> timestamp_ntz
convert_timezone(int|string; int|string; string) -> timestamp_ntz
corr(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
count_if(boolean|string) -> bigint
covar_pop(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
covar_samp(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
crc32(string|binary) -> bigint
curdate() -> date
current_catalog() -> string
current_database() -> string
current_date() -> date
current_path() -> string
current_schema() -> string
current_time() -> time(6)
current_time(string) -> time(1)
current_timestamp() -> timestamp
current_timezone() -> string
current_user() -> string
decode(string; int|double|string) -> $1
decode(int|string; int|string; string) -> $3
decode(int|string; int|string; int) -> bigint
elt(int|bigint|double|string; int|double|string) -> string
elt(int|string; int|string; int|string) -> string
encode(int|bigint|double|string|date|timestamp; int|double|string) -> binary
every(boolean|string) -> boolean
find_in_set(int|bigint|double|string|date|timestamp; int|double|string) -> int
first(any) -> $1
first(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean) -> $1
first_value(any) -> $1
first_value(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean) -> $1
format_number(int|bigint|double; int|string) -> string
format_string(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
format_string(int|bigint|double|string|date|timestamp; int|double|string) -> string
format_string(int|string; int|string; int|string) -> string
from_base32(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> binary
from_utc_timestamp(string|date|timestamp; int|double|string) -> timestamp
get_json_object(string; string) -> $1
getbit(int|bigint; int|double|string) -> tinyint
hash(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp|array<int>|array<string>|struct<x:int>) -> int
hash(int|bigint|double|string|date|timestamp|array<int>|array<string>; int|double|string) -> int
hash(int|string; int|string; int|string) -> int
hex(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
hll_sketch_agg(int|bigint|string|binary) -> binary
hll_sketch_agg(int|bigint|string|binary; int) -> binary
hll_sketch_estimate(binary) -> bigint
hll_union_agg(binary) -> $1
hll_union_agg(binary; boolean) -> $1
hmac(string; string) -> binary
hmac(string; string; int|string) -> binary
initcap(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
input_file_block_length() -> bigint
input_file_block_start() -> bigint
input_file_name() -> string
is_valid_utf8(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> boolean
jaro_winkler_similarity(int|bigint|double|string|date|timestamp; int|double|string) -> double
json_array_length(string) -> int
json_object_keys(string) -> array<$1>
kll_merge_agg_bigint(binary) -> $1
kll_merge_agg_double(binary) -> $1
kll_merge_agg_float(binary) -> $1
kll_sketch_agg_bigint(int|bigint) -> binary
kll_sketch_agg_double(double) -> binary
kll_sketch_get_n_bigint(string|binary) -> bigint
kll_sketch_get_n_double(string|binary) -> bigint
kll_sketch_get_n_float(string|binary) -> bigint
kll_sketch_get_quantile_bigint(string; int|double|string) -> bigint
kll_sketch_get_quantile_double(string; int|double|string) -> double
kll_sketch_get_quantile_float(string; int|double|string) -> float
kll_sketch_get_rank_bigint(string; int|double|string) -> double
kll_sketch_get_rank_double(string; int|double|string) -> double
kll_sketch_get_rank_float(string; int|double|string) -> double
kll_sketch_merge_bigint(string; string) -> binary
kll_sketch_merge_double(string; string) -> binary
kll_sketch_merge_float(string; string) -> binary
kll_sketch_to_string_bigint(string|binary) -> string
kll_sketch_to_string_double(string|binary) -> string
kll_sketch_to_string_float(string|binary) -> string
kurtosis(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> double
last(any) -> $1
last(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean) -> $1
last_value(any) -> $1
last_value(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean) -> $1
levenshtein(int|bigint|double|string|date|timestamp; int|double|string) -> int
levenshtein(int|string; int|string; int|string) -> int
listagg(string|binary) -> $1
listagg(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|date|timestamp) -> string
listagg(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|date|timestamp; boolean|int|bigint|double|decimal(10,2)|string|timestamp) -> string
localtime() -> time(6)
localtime(string) -> time(1)
localtimestamp() -> timestamp_ntz
luhn_check(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> boolean
make_dt_interval() -> interval day to second
make_dt_interval(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> interval day to second
make_dt_interval(int|bigint|double|string; int|double|string) -> interval day to second
make_dt_interval(int|string; int|string; int|string) -> interval day to second
make_interval() -> interval
make_interval(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> interval
make_interval(int|bigint|double|string; int|double|string) -> interval
make_interval(int|string; int|string; int|string) -> interval
make_timestamp(date) -> timestamp
make_valid_utf8(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
make_ym_interval() -> interval year to month
make_ym_interval(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> interval year to month
make_ym_interval(int|bigint|double|string; int|double|string) -> interval year to month
map() -> map<void,void>
map_concat() -> map<string,string>
map_concat(map<string,int>) -> $1
mask(string) -> $1
mask(string; string) -> $1
mask(string; string; string) -> $1
max_by(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean|int|bigint|double|string|timestamp|array<int>|array<double>) -> $1
max_by(int|double|string|boolean; int|double|string|boolean; int|double|string) -> array<$1>
md5(string|binary) -> string
measure(any) -> $1
median(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> double
min_by(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean|int|bigint|double|string|timestamp|array<int>|array<double>) -> $1
min_by(int|double|string|boolean; int|double|string|boolean; int|double|string) -> array<$1>
mode(any) -> $1
mode(boolean|int|bigint|double|string|binary|date|timestamp|array<int>|array<string>|map<string,int>|struct<x:int>; boolean) -> $1
monotonically_increasing_id() -> bigint
now() -> timestamp
parse_json(string) -> variant
parse_url(string; string) -> $1
parse_url(string; string; string) -> $1
percentile(int|bigint|double|string; double|array<double>) -> $2
percentile(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|decimal(10,2)|string) -> double
percentile(double; array<int>) -> array<$1>
percentile(int|double|decimal(10,2)|string; int|double|decimal(10,2)|string; int) -> double
percentile_approx(int|double; int|double|string; int) -> $1
percentile_approx(string; int|double|decimal(10,2)|string; int) -> double
printf(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
printf(int|bigint|double|string|date|timestamp; int|double|string) -> string
printf(int|string; int|string; int|string) -> string
quote(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
raise_error(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> void
rand() -> double
rand(int|bigint) -> double
randn() -> double
randn(int|bigint) -> double
random() -> double
random(int|bigint) -> double
randstr(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> string
randstr(int|bigint|double|string; int) -> string
regexp_extract_all(int|bigint|double|string|date|timestamp; int|double|string) -> array<string>
regexp_extract_all(int|string; int|string; int|string) -> array<string>
regexp_instr(int|bigint|double|string|date|timestamp; int|double|string) -> int
regexp_instr(int|string; int|string; int|string) -> int
regexp_substr(int|bigint|double|string|date|timestamp; int|double|string) -> string
regr_avgx(int|bigint|double|string; double) -> $2
regr_avgx(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|string) -> double
regr_avgy(double; int|bigint|double|string) -> $1
regr_avgy(int|bigint|string; int|bigint|double|decimal(10,2)|string) -> double
regr_count(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> bigint
regr_intercept(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
regr_r2(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
regr_slope(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
regr_sxx(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
regr_sxy(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
regr_syy(int|bigint|double|decimal(10,2)|decimal(5,1)|string; int|bigint|double|decimal(10,2)|string) -> double
schema_of_csv(string) -> $1
schema_of_json(string) -> $1
schema_of_xml(string) -> $1
sentences(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> array<array<string>>
sentences(int|bigint|double|string|date|timestamp; int|double|string) -> array<array<string>>
sentences(int|string; int|string; int|string) -> array<array<string>>
sequence(bigint|date|timestamp; int|string) -> array<$1>
sequence(string; int) -> array<bigint>
sequence(int; int) -> array<$1>
sequence(int; string) -> array<bigint>
sequence(string; int|string; int|string) -> array<bigint>
sequence(int; string; int|string) -> array<bigint>
sequence(int; int; int) -> array<$1>
sequence(int; int; string) -> array<bigint>
session_user() -> string
sha(string|binary) -> string
sha1(string|binary) -> string
sha2(string; int|double|string) -> $1
shuffle(array<int>|array<string>) -> $1
shuffle(array<int>|array<string>; int) -> $1
skewness(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> double
some(boolean|string) -> boolean
sort_array(array<int>|array<string>) -> $1
soundex(string) -> $1
spark_partition_id() -> int
st_geogfromwkb(string|binary) -> geography(4326)
st_geomfromwkb(string|binary) -> geometry(0)
st_geomfromwkb(string; double|string) -> geometry(any)
str_to_map(string) -> map<string,string>
str_to_map(string; string) -> map<string,string>
str_to_map(string; string; string) -> map<string,string>
string_agg(string|binary) -> $1
string_agg(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|date|timestamp) -> string
string_agg(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|date|timestamp; boolean|int|bigint|double|decimal(10,2)|string|timestamp) -> string
substring_index(int|string; int|string; int|string) -> string
theta_intersection_agg(binary) -> $1
theta_sketch_agg(int|bigint|double|string|binary|array<int>) -> binary
theta_sketch_agg(int|bigint|double|string|array<int>; int) -> binary
theta_sketch_estimate(binary) -> bigint
theta_union_agg(binary) -> $1
to_base32(string|binary) -> string
to_binary(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> binary
to_char(date|timestamp; int|double|string) -> string
to_csv(struct<x:int>) -> string
to_json(array<int>|array<string>|map<string,int>|struct<x:int>) -> string
to_timestamp_ltz(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> timestamp
to_timestamp_ltz(string|date|timestamp; int|double|string) -> timestamp
to_timestamp_ntz(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> timestamp_ntz
to_timestamp_ntz(int|bigint|double|string|date|timestamp; int|double|string) -> timestamp_ntz
to_utc_timestamp(string|date|timestamp; int|double|string) -> timestamp
to_varchar(date|timestamp; int|double|string) -> string
to_variant_object(array<int>|array<string>|map<string,int>|struct<x:int>) -> variant
to_xml(struct<x:int>) -> string
transform(array<int>|array<string>; int|double|string) -> array<$2>
try_aes_decrypt(string; string) -> binary
try_aes_decrypt(string; string; int|string) -> binary
try_avg(double) -> $1
try_avg(int|bigint|string|timestamp) -> double
try_make_interval(int|bigint|double|decimal(10,2)|decimal(5,1)|string) -> interval
try_make_interval(int|bigint|double|string; int|double|string) -> interval
try_make_interval(int|string; int|string; int|string) -> interval
try_make_timestamp(date) -> timestamp
try_parse_json(string) -> variant
try_parse_url(string; string) -> $1
try_parse_url(string; string; string) -> $1
try_sum(bigint|double) -> $1
try_sum(int) -> bigint
try_sum(string|timestamp) -> double
try_to_binary(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> binary
try_to_binary(int|bigint|double|string|date|timestamp; int|double|string) -> binary
try_url_decode(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
try_validate_utf8(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
tuple_intersection_agg_double(string|binary) -> binary
tuple_intersection_agg_integer(string|binary) -> binary
tuple_sketch_agg_double(int|bigint|double|string|date|timestamp|array<int>; int|double|string) -> binary
tuple_sketch_agg_integer(int|bigint|double|string|date|timestamp|array<int>; int|double|string) -> binary
tuple_sketch_estimate_double(binary) -> double
tuple_sketch_estimate_integer(binary) -> double
tuple_sketch_summary_double(binary) -> double
tuple_sketch_summary_integer(binary) -> bigint
tuple_sketch_theta_double(binary) -> double
tuple_sketch_theta_integer(binary) -> double
tuple_union_agg_double(string|binary) -> binary
tuple_union_agg_integer(string|binary) -> binary
typeof(any) -> string
unbase64(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> binary
unhex(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> binary
uniform(int|bigint|double; int) -> $1
uniform(int|bigint|double; double) -> $2
uniform(int; int; int) -> $1
url_decode(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
url_encode(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
user() -> string
uuid() -> string
uuid(int|bigint) -> string
validate_utf8(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp) -> string
version() -> string
when(any) -> $1
xpath(string; string) -> array<$1>
xpath_boolean(string; string) -> boolean
xpath_double(string; string) -> double
xpath_float(string; string) -> float
xpath_int(string; string) -> int
xpath_long(string; string) -> bigint
xpath_number(string; string) -> double
xpath_short(string; string) -> smallint
xpath_string(string; string) -> $1
xxhash64(boolean|int|bigint|double|decimal(10,2)|decimal(5,1)|string|binary|date|timestamp|array<int>|array<string>|struct<x:int>) -> bigint
xxhash64(int|bigint|double|string|date|timestamp|array<int>|array<string>; int|double|string) -> bigint
xxhash64(int|string; int|string; int|string) -> bigint"""
