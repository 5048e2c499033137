-- breaking: no
--
-- Some time zones have two names, of which one is older: Asia/Calcutta and Asia/Kolkata. Projects are compared by the name of their zone, so
-- one that had the older name had other days than its organization's other projects. Returns the present name, in any case; any other
-- name as it is. Names of places that only have the same clock today, such as Europe/Stockholm, stay apart.
create function present_time_zone(name text) returns text language sql immutable parallel safe as $$
  select coalesce((select present from (values
    ('africa/asmera', 'Africa/Asmara'), ('america/argentina/comodrivadavia', 'America/Argentina/Catamarca'),
    ('america/atka', 'America/Adak'), ('america/buenos_aires', 'America/Argentina/Buenos_Aires'),
    ('america/catamarca', 'America/Argentina/Catamarca'), ('america/coral_harbour', 'America/Atikokan'),
    ('america/cordoba', 'America/Argentina/Cordoba'), ('america/fort_wayne', 'America/Indiana/Indianapolis'),
    ('america/godthab', 'America/Nuuk'), ('america/indianapolis', 'America/Indiana/Indianapolis'),
    ('america/jujuy', 'America/Argentina/Jujuy'), ('america/knox_in', 'America/Indiana/Knox'),
    ('america/louisville', 'America/Kentucky/Louisville'), ('america/mendoza', 'America/Argentina/Mendoza'),
    ('america/porto_acre', 'America/Rio_Branco'), ('asia/ashkhabad', 'Asia/Ashgabat'), ('asia/calcutta', 'Asia/Kolkata'),
    ('asia/dacca', 'Asia/Dhaka'), ('asia/istanbul', 'Europe/Istanbul'), ('asia/katmandu', 'Asia/Kathmandu'), ('asia/macao', 'Asia/Macau'),
    ('asia/rangoon', 'Asia/Yangon'), ('asia/saigon', 'Asia/Ho_Chi_Minh'), ('asia/thimbu', 'Asia/Thimphu'),
    ('asia/ujung_pandang', 'Asia/Makassar'), ('asia/ulan_bator', 'Asia/Ulaanbaatar'), ('atlantic/faeroe', 'Atlantic/Faroe'),
    ('australia/act', 'Australia/Sydney'), ('australia/canberra', 'Australia/Sydney'), ('australia/lhi', 'Australia/Lord_Howe'),
    ('australia/nsw', 'Australia/Sydney'), ('australia/north', 'Australia/Darwin'), ('australia/queensland', 'Australia/Brisbane'),
    ('australia/south', 'Australia/Adelaide'), ('australia/tasmania', 'Australia/Hobart'), ('australia/victoria', 'Australia/Melbourne'),
    ('australia/west', 'Australia/Perth'), ('australia/yancowinna', 'Australia/Broken_Hill'), ('brazil/acre', 'America/Rio_Branco'),
    ('brazil/denoronha', 'America/Noronha'), ('brazil/east', 'America/Sao_Paulo'), ('brazil/west', 'America/Manaus'),
    ('canada/atlantic', 'America/Halifax'), ('canada/central', 'America/Winnipeg'), ('canada/eastern', 'America/Toronto'),
    ('canada/mountain', 'America/Edmonton'), ('canada/newfoundland', 'America/St_Johns'), ('canada/pacific', 'America/Vancouver'),
    ('canada/saskatchewan', 'America/Regina'), ('canada/yukon', 'America/Whitehorse'), ('chile/continental', 'America/Santiago'),
    ('chile/easterisland', 'Pacific/Easter'), ('etc/gmt+0', 'UTC'), ('etc/gmt', 'UTC'), ('etc/gmt-0', 'UTC'), ('etc/gmt0', 'UTC'),
    ('etc/greenwich', 'UTC'), ('etc/uct', 'UTC'), ('etc/utc', 'UTC'), ('etc/universal', 'UTC'), ('etc/zulu', 'UTC'),
    ('europe/kiev', 'Europe/Kyiv'), ('europe/nicosia', 'Asia/Nicosia'), ('mexico/bajanorte', 'America/Tijuana'),
    ('mexico/bajasur', 'America/Mazatlan'), ('mexico/general', 'America/Mexico_City'), ('pacific/enderbury', 'Pacific/Kanton'),
    ('pacific/ponape', 'Pacific/Pohnpei'), ('pacific/samoa', 'Pacific/Pago_Pago'), ('pacific/truk', 'Pacific/Chuuk'),
    ('us/alaska', 'America/Anchorage'), ('us/aleutian', 'America/Adak'), ('us/arizona', 'America/Phoenix'),
    ('us/central', 'America/Chicago'), ('us/east-indiana', 'America/Indiana/Indianapolis'), ('us/eastern', 'America/New_York'),
    ('us/hawaii', 'Pacific/Honolulu'), ('us/indiana-starke', 'America/Indiana/Knox'), ('us/michigan', 'America/Detroit'),
    ('us/mountain', 'America/Denver'), ('us/pacific', 'America/Los_Angeles'), ('us/samoa', 'Pacific/Pago_Pago')
  ) renamed (older, present) where older = lower(name)), name) $$;

-- The days of these zones are the same, so no figure changes and no closed month. A database whose zones lack the present name keeps the other.
do $$
declare
  zone record;
begin
  for zone in
    select old.name, z.name as present
    from (select time_zone from projects union select time_zone from figure_settings union select time_zone from finance_months) old (name)
    join pg_timezone_names z on z.name = present_time_zone(old.name) and z.name <> old.name
  loop
    update projects set time_zone = zone.present where time_zone = zone.name;
    update figure_settings set time_zone = zone.present where time_zone = zone.name;
    update finance_months set time_zone = zone.present where time_zone = zone.name;
  end loop;
end $$;
