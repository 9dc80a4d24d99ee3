SELECT CAST('-' AS REAL), CAST('-.' AS REAL), CAST('-0' AS REAL), CAST('-0.0' AS REAL), CAST('-e5' AS REAL), CAST('- 1' AS REAL), CAST('-abc' AS REAL), -'-', +'-'+0.0, '-'*1.0, '-0'*1.0, abs('-'), round('-'), round('-0.0'), CAST('-0x' AS REAL), CAST('-.e1' AS REAL), sum('-'), avg('-'), total('-'), '-' + 0;
SELECT subtype(jsonb_extract('"s"', '\$.b[1]', '\$')), subtype(json_extract('[1]','\$','\$')), hex(jsonb_extract('[1]','\$','\$'));
SELECT '-0'-0.0, '1'*2.5, '1e2'%7, 5.5%'3', '9223372036854775807'+1.0, ' 12'+0.5, x'2d30'*1.0, abs('-0'), abs(-0.0);
