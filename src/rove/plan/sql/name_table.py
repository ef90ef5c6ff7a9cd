"""What Spark calls the results of functions. A test writes this file: `test_column_names.py`."""

NAMES = """\
aes_decrypt/2 aes_decrypt($1, $2, GCM, DEFAULT, )
aes_decrypt/3 aes_decrypt($1, $2, $3, DEFAULT, )
aes_encrypt/2 aes_encrypt($1, $2, GCM, DEFAULT, , )
aes_encrypt/3 aes_encrypt($1, $2, $3, DEFAULT, , )
any/1
any_value/1
approx_top_k/1 approx_top_k($1, 5, 10000)
approx_top_k/2 approx_top_k($1, $2, 10000)
approx_top_k/3
approx_top_k_accumulate/1 approx_top_k_accumulate($1, 10000)
approx_top_k_accumulate/2
array_agg/1 collect_list($1)
array_append/2
array_compact/1
array_distinct/1
array_join/2
array_max/1
array_min/1
array_position/2
array_prepend/2
array_remove/2
array_repeat/2
arrays_zip/0
base64/1
bin/1
bit_and/1
bit_get/2
bit_or/1
bit_xor/1
bitmap_and_agg/1
bitmap_bit_position/1
bitmap_bucket_number/1
bitmap_construct_agg/1
bitmap_count/1
bitmap_or_agg/1
bool_and/1
bool_or/1
cbrt/1 CBRT($1)
collation/1
collect_list/1
collect_set/1
collect_union/1
conv/3
convert_timezone/2 convert_timezone(current_timezone(), $1, $2)
convert_timezone/3
corr/2
count_if/1
covar_pop/2
covar_samp/2
crc32/1
curdate/0 current_date()
current_catalog/0
current_database/0 current_schema()
current_date/0
current_path/0
current_schema/0
current_time/0 current_time(6)
current_timestamp/0
current_timezone/0
current_user/0
decode/2
decode/3
elt/2
elt/3
encode/2
every/1
find_in_set/2
first/1
first_value/1
format_number/2
format_string/1
format_string/2
format_string/3
from_base32/1
from_utc_timestamp/2
get_json_object/2
getbit/2
hash/1
hash/2
hash/3
hex/1
hll_sketch_agg/1 hll_sketch_agg($1, 12)
hll_sketch_agg/2
hll_sketch_estimate/1
hll_union_agg/1 hll_union_agg($1, false)
hll_union_agg/2
hmac/2 hmac($1, $2, SHA-256)
hmac/3
initcap/1
input_file_block_length/0
input_file_block_start/0
input_file_name/0
is_valid_utf8/1
jaro_winkler_similarity/2
json_array_length/1
json_object_keys/1
kll_merge_agg_bigint/1
kll_merge_agg_double/1
kll_merge_agg_float/1
kll_sketch_agg_bigint/1
kll_sketch_agg_double/1
kll_sketch_get_n_bigint/1
kll_sketch_get_n_double/1
kll_sketch_get_n_float/1
kll_sketch_get_quantile_bigint/2
kll_sketch_get_quantile_double/2
kll_sketch_get_quantile_float/2
kll_sketch_get_rank_bigint/2
kll_sketch_get_rank_double/2
kll_sketch_get_rank_float/2
kll_sketch_merge_bigint/2
kll_sketch_merge_double/2
kll_sketch_merge_float/2
kll_sketch_to_string_bigint/1
kll_sketch_to_string_double/1
kll_sketch_to_string_float/1
kurtosis/1
last/1
last_value/1
levenshtein/2
levenshtein/3
listagg/1 listagg($1, NULL)
listagg/2
localtime/0 current_time(6)
localtimestamp/0
luhn_check/1
make_dt_interval/0 make_dt_interval(0, 0, 0, 0.000000)
make_dt_interval/1 make_dt_interval($1, 0, 0, 0.000000)
make_dt_interval/2 make_dt_interval($1, $2, 0, 0.000000)
make_dt_interval/3 make_dt_interval($1, $2, $3, 0.000000)
make_interval/0 make_interval(0, 0, 0, 0, 0, 0, 0.000000)
make_interval/1 make_interval($1, 0, 0, 0, 0, 0, 0.000000)
make_interval/2 make_interval($1, $2, 0, 0, 0, 0, 0.000000)
make_interval/3 make_interval($1, $2, $3, 0, 0, 0, 0.000000)
make_timestamp/1
make_valid_utf8/1
make_ym_interval/0 make_ym_interval(0, 0)
make_ym_interval/1 make_ym_interval($1, 0)
make_ym_interval/2
map/0
map_concat/0
map_concat/1
mask/1 mask($1, X, x, n, NULL)
max_by/2
max_by/3
md5/1
measure/1
median/1
min_by/2
min_by/3
mode/1
monotonically_increasing_id/0
now/0
parse_json/1
parse_url/2
parse_url/3
percentile/2 percentile($1, $2, 1)
printf/1
printf/2
printf/3
quote/1
raise_error/1 raise_error(USER_RAISED_EXCEPTION, map(errorMessage, $1))
rand/0
rand/1
randn/0
randn/1
random/0 rand()
random/1 rand($1)
randstr/1
randstr/2
regexp_extract_all/2 regexp_extract_all($1, $2, 1)
regexp_extract_all/3
regexp_instr/2 regexp_instr($1, $2, 0)
regexp_instr/3
regexp_substr/2
regr_avgx/2
regr_avgy/2
regr_count/2
regr_intercept/2
regr_r2/2
regr_slope/2
regr_sxx/2
regr_sxy/2
regr_syy/2
schema_of_csv/1
schema_of_json/1
schema_of_xml/1
sentences/1 sentences($1, , )
sentences/2 sentences($1, $2, )
sentences/3
sequence/2
sequence/3
session_user/0
sha/1
sha1/1
sha2/2
shuffle/1
skewness/1
some/1
sort_array/1 sort_array($1, true)
soundex/1
spark_partition_id/0 SPARK_PARTITION_ID()
st_geogfromwkb/1
st_geomfromwkb/1 st_geomfromwkb($1, 0)
st_geomfromwkb/2
str_to_map/1 str_to_map($1, ,, :)
str_to_map/2 str_to_map($1, $2, :)
str_to_map/3
string_agg/1 string_agg($1, NULL)
string_agg/2
substring_index/3
theta_intersection_agg/1
theta_sketch_agg/1 theta_sketch_agg($1, 12)
theta_sketch_agg/2
theta_sketch_estimate/1
theta_union_agg/1 theta_union_agg($1, 12)
to_base32/1
to_binary/1
to_csv/1
to_json/1
to_timestamp_ltz/1
to_timestamp_ltz/2
to_timestamp_ntz/1
to_timestamp_ntz/2
to_utc_timestamp/2
to_variant_object/1
to_xml/1
try_aes_decrypt/2 try_aes_decrypt($1, $2, GCM, DEFAULT, )
try_aes_decrypt/3 try_aes_decrypt($1, $2, $3, DEFAULT, )
try_avg/1
try_make_interval/1 try_make_interval($1, 0, 0, 0, 0, 0, 0.000000)
try_make_interval/2 try_make_interval($1, $2, 0, 0, 0, 0, 0.000000)
try_make_interval/3 try_make_interval($1, $2, $3, 0, 0, 0, 0.000000)
try_make_timestamp/1
try_parse_json/1
try_parse_url/2
try_parse_url/3
try_sum/1
try_to_binary/1
try_to_binary/2
try_url_decode/1
try_validate_utf8/1
tuple_intersection_agg_double/1 tuple_intersection_agg_double($1, sum)
tuple_intersection_agg_integer/1 tuple_intersection_agg_integer($1, sum)
tuple_sketch_agg_double/2 tuple_sketch_agg_double($1, $2, 12, sum)
tuple_sketch_agg_integer/2 tuple_sketch_agg_integer($1, $2, 12, sum)
tuple_sketch_estimate_double/1
tuple_sketch_estimate_integer/1
tuple_sketch_summary_double/1 tuple_sketch_summary_double($1, sum)
tuple_sketch_summary_integer/1 tuple_sketch_summary_integer($1, sum)
tuple_sketch_theta_double/1
tuple_sketch_theta_integer/1
tuple_union_agg_double/1 tuple_union_agg_double($1, 12, sum)
tuple_union_agg_integer/1 tuple_union_agg_integer($1, 12, sum)
typeof/1
unbase64/1
unhex/1
uniform/2
uniform/3
url_decode/1
url_encode/1
user/0
uuid/0
validate_utf8/1
version/0
xpath/2
xpath_boolean/2
xpath_double/2
xpath_float/2
xpath_int/2
xpath_long/2
xpath_number/2
xpath_short/2
xpath_string/2
xxhash64/1
xxhash64/2
xxhash64/3"""
