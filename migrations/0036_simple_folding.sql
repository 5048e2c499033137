-- breaking: no
--
-- Titles and e-mail addresses are compared by simple case folding, by which ß is not ss. Until now they were folded in full:
-- what contains a letter that was folded to two or three is folded again. Every other letter was folded to one, which is
-- copied from its place.
create function pg_temp.refold(given text, folded text) returns text language sql immutable as $$
  with letters as (
    select n, letter, case
        when strpos('ßİŉǰևẖẗẘẙẚẞὐᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯᾲᾳᾴᾶᾼῂῃῄῆῌῖῤῦῲῳῴῶῼﬀﬁﬂﬅﬆﬓﬔﬕﬖﬗ', letter) > 0 then 2
        when strpos('ΐΰὒὔὖᾷῇῒΐῗῢΰῧῷﬃﬄ', letter) > 0 then 3
        else 1 end as length
    from string_to_table(given, null) with ordinality as one (letter, n)
  ), placed as (
    select *, 1 + sum(length) over (order by n) - length as place from letters
  )
  select string_agg(case when length = 1 then substr(folded, place::int, 1) else translate(letter,
      'ẞᾈᾉᾊᾋᾌᾍᾎᾏᾘᾙᾚᾛᾜᾝᾞᾟᾨᾩᾪᾫᾬᾭᾮᾯᾼῌΐΰῼﬅ',
      'ßᾀᾁᾂᾃᾄᾅᾆᾇᾐᾑᾒᾓᾔᾕᾖᾗᾠᾡᾢᾣᾤᾥᾦᾧᾳῃΐΰῳﬆ') end, '' order by n)
  from placed $$;

update profiles set email_folded = pg_temp.refold(email, email_folded)
where email ~ '[ßİŉǰևẖẗẘẙẚẞὐᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯᾲᾳᾴᾶᾼῂῃῄῆῌῖῤῦῲῳῴῶῼﬀﬁﬂﬅﬆﬓﬔﬕﬖﬗΐΰὒὔὖᾷῇῒΐῗῢΰῧῷﬃﬄ]';

update funnels set title_folded = pg_temp.refold(title, title_folded)
where title ~ '[ßİŉǰևẖẗẘẙẚẞὐᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯᾲᾳᾴᾶᾼῂῃῄῆῌῖῤῦῲῳῴῶῼﬀﬁﬂﬅﬆﬓﬔﬕﬖﬗΐΰὒὔὖᾷῇῒΐῗῢΰῧῷﬃﬄ]';

drop function pg_temp.refold;
