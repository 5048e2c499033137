// Where the demo's people live: names, cities and prices of fifteen countries in eight scripts.

export interface Place {
  country: string
  locale: string
  timezone: string
  currency: string
  /** How many of a thousand people live there. */
  share: number
  /** Given names and family names, in the country's script. */
  given: readonly string[]
  family: readonly string[]
  /** City, region, postal code. */
  cities: readonly (readonly [city: string, region: string, postalCode: string])[]
  /** Numbers that are reserved for films and examples; countries without them have no phones. */
  phone?: string
}

const list = (text: string) => text.split(' ')

// biome-ignore format: a table.
export const PLACES: readonly Place[] = [
  { country: 'US', locale: 'en', timezone: 'America/New_York', currency: 'USD', share: 250, phone: '+120255501##',
    given: list('Ava Noah Mia Liam Emma Ethan Zoe Lucas Grace Owen Ruby Caleb'),
    family: list('Miller Johnson Brooks Parker Nguyen Rivera Hughes Bennett Foster Coleman'),
    cities: [['New York', 'NY', '10012'], ['Austin', 'TX', '78701'], ['Portland', 'OR', '97205'], ['Chicago', 'IL', '60614']] },
  { country: 'GB', locale: 'en', timezone: 'Europe/London', currency: 'GBP', share: 90, phone: '+447700900###',
    given: list('Isla Oliver Freya Harry Poppy Alfie Maisie George Niamh Rhys'),
    family: list('Taylor Davies Evans Walker Wright O’Brien Hughes Clarke Patel Khan'),
    cities: [['London', 'ENG', 'N1 9GU'], ['Leeds', 'ENG', 'LS1 4DY'], ['Cardiff', 'WLS', 'CF10 1EP']] },
  { country: 'DE', locale: 'de', timezone: 'Europe/Berlin', currency: 'EUR', share: 110, phone: '+493023125###',
    given: list('Lena Jonas Mila Finn Käthe Jürgen Anja Björn Sophie Emre'),
    family: list('Müller Schäfer Weiß Krüger Vogt Böhm Yılmaz Lang Seidel Franke'),
    cities: [['Berlin', 'BE', '10115'], ['München', 'BY', '80331'], ['Köln', 'NW', '50667']] },
  { country: 'FR', locale: 'fr', timezone: 'Europe/Paris', currency: 'EUR', share: 70, phone: '+336399801##',
    given: list('Chloé Hugo Inès Gaël Zoé Rémi Élise Noël Anaïs Théo'),
    family: list('Lefèvre Moreau Garçon Dubois Benoît Lemaître Faure Guérin Roux Noël'),
    cities: [['Paris', 'IDF', '75011'], ['Orléans', 'CVL', '45000'], ['Besançon', 'BFC', '25000']] },
  { country: 'ES', locale: 'es', timezone: 'Europe/Madrid', currency: 'EUR', share: 60,
    given: list('Lucía Hugo Martín Sofía Íñigo Begoña Álvaro Núria'),
    family: list('García Muñoz Peña Núñez Castaño Ibáñez Vázquez Ferrer'),
    cities: [['Madrid', 'MD', '28012'], ['A Coruña', 'GA', '15001'], ['Málaga', 'AN', '29001']] },
  { country: 'BR', locale: 'pt', timezone: 'America/Sao_Paulo', currency: 'BRL', share: 70,
    given: list('João Ana Conceição Luís Beatriz Antônio Júlia Caetano'),
    family: list('Gonçalves Araújo Souza Magalhães Simões Lourenço Prado'),
    cities: [['São Paulo', 'SP', '01310-100'], ['Belém', 'PA', '66010-000'], ['Florianópolis', 'SC', '88010-000']] },
  { country: 'PL', locale: 'pl', timezone: 'Europe/Warsaw', currency: 'PLN', share: 40,
    given: list('Zofia Łukasz Żaneta Michał Małgorzata Stanisław'),
    family: list('Wiśniewska Dąbrowski Wójcik Śliwa Źrebiec Kołodziej'),
    cities: [['Łódź', 'LD', '90-001'], ['Kraków', 'MA', '31-042'], ['Gdańsk', 'PM', '80-831']] },
  { country: 'TR', locale: 'tr', timezone: 'Europe/Istanbul', currency: 'TRY', share: 40,
    given: list('Işıl İbrahim Gülşah Çağrı Özge Ümit'),
    family: list('Yıldız İpek Şahin Öztürk Çelik Güneş'),
    cities: [['İstanbul', '34', '34433'], ['Diyarbakır', '21', '21070']] },
  { country: 'UA', locale: 'uk', timezone: 'Europe/Kyiv', currency: 'UAH', share: 50,
    given: list('Олена Тарас Ґалина Юлія Їжак Софія Дмитро'),
    family: list('Шевченко Коваленко Бойко Ткачук Мельник Кравець'),
    cities: [['Київ', '30', '01001'], ['Львів', '46', '79000'], ['Одеса', '51', '65000']] },
  { country: 'GR', locale: 'el', timezone: 'Europe/Athens', currency: 'EUR', share: 30,
    given: list('Ελένη Γιώργος Σοφία Νίκος Άννα Οδυσσέας'),
    family: list('Παπαδόπουλος Ιωάννου Βασιλείου Αγγελίδης Ξένος'),
    cities: [['Αθήνα', 'I', '105 57'], ['Θεσσαλονίκη', 'B', '546 24']] },
  { country: 'EG', locale: 'ar', timezone: 'Africa/Cairo', currency: 'EGP', share: 40,
    given: list('ليلى أحمد فاطمة يوسف مريم عمر'),
    family: list('حسن السيد منصور عبدالله الشريف'),
    cities: [['القاهرة', 'C', '11511'], ['الإسكندرية', 'ALX', '21500']] },
  { country: 'IL', locale: 'he', timezone: 'Asia/Jerusalem', currency: 'ILS', share: 30,
    given: list('נועה איתי תמר יונתן שירה'),
    family: list('כהן לוי מזרחי פרץ ביטון'),
    cities: [['תל אביב', 'TA', '6578104'], ['חיפה', 'HA', '3303219']] },
  { country: 'IN', locale: 'hi', timezone: 'Asia/Kolkata', currency: 'INR', share: 50,
    given: list('आरव प्रिया विवान अनन्या रोहन'),
    family: list('शर्मा पटेल गुप्ता सिंह मेहता'),
    cities: [['मुंबई', 'MH', '400001'], ['दिल्ली', 'DL', '110001']] },
  { country: 'CN', locale: 'zh', timezone: 'Asia/Shanghai', currency: 'CNY', share: 30,
    given: list('伟 芳 秀英 娜 敏 静'), family: list('王 李 张 刘 陈 杨'),
    cities: [['上海', 'SH', '200000'], ['成都', 'SC', '610000']] },
  { country: 'JP', locale: 'ja', timezone: 'Asia/Tokyo', currency: 'JPY', share: 40,
    given: list('さくら 陽翔 結衣 蓮 美咲 湊'), family: list('佐藤 鈴木 高橋 田中 渡辺 𠮷田'),
    cities: [['東京', '13', '150-0002'], ['京都', '26', '604-8001']] },
]

/** US dollars for one unit of the currency, roughly: the demo needs no exact rates. */
export const DOLLARS: Readonly<Record<string, number>> = {
  USD: 1, EUR: 1.09, GBP: 1.27, BRL: 0.18, PLN: 0.25, TRY: 0.029, UAH: 0.024, EGP: 0.02, ILS: 0.27, INR: 0.012,
  CNY: 0.14, JPY: 0.0067,
} // biome-ignore format: a table.
