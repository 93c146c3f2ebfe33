; Makes the files of tests/data/histories/jepsen-files: by Fressian's own library, in the layout of
; jepsen.store.format. With Debian's clojure and libdata-fressian-clojure, and JARS the jars clojure,
; spec.alpha, core.specs.alpha, data.fressian and fressian of /usr/share/java, colons between:
;   java -cp JARS clojure.main make_jepsen_files.clj FOLDER && gzip -9n FOLDER/*
(require '[clojure.data.fressian :as fress] '[clojure.java.io :as io])
(import '(org.fressian.handlers WriteHandler)
        '(java.io ByteArrayOutputStream FileOutputStream)
        '(java.nio ByteBuffer)
        '(java.util.zip CRC32))

(def folder (first *command-line-args*))
(defrecord Op [index time type process f value])
(defrecord BlockRef [id])
(defrecord Other [a b])

(defn handler [tag parts]
  {tag (reify WriteHandler
         (write [_ w x]
           (let [found (parts x)]
             (.writeTag w tag (count found))
             (doseq [[part cache?] found] (.writeObject w part (boolean cache?))))))})

(defn more [op]
  (not-empty (dissoc (into {} op) :index :time :type :process :f :value)))

(def handlers
  (-> fress/clojure-write-handlers
      (merge {clojure.lang.PersistentHashSet (handler "persistent-hash-set" (fn [s] [[(seq s)]]))
              clojure.lang.MapEntry (handler "map-entry" (fn [e] [[(key e)] [(val e)]]))
              java.time.Instant (handler "instant" (fn [i] [[(.toString i)]]))
              user.BlockRef (handler "block-ref" (fn [b] [[(:id b)]]))
              user.Op (handler "jepsen.history.Op"
                               (fn [op] [[(:index op)] [(:time op)] [(:type op) true]
                                         [(:process op)] [(:f op) true] [(:value op)]
                                         [(more op)]]))})
      fress/associative-lookup
      fress/inheritance-lookup))

(defn bytes-of [& values]
  (let [out (ByteArrayOutputStream.) writer (fress/create-writer out :handlers handlers)]
    (doseq [value values] (fress/write-object writer value))
    (.close writer)
    (.toByteArray out)))

(defn numbers [& pairs]
  (let [buffer (ByteBuffer/allocate 65536)]
    (doseq [[kind n] (partition 2 pairs)]
      (case kind :int (.putInt buffer (int n)) :long (.putLong buffer (long n))))
    (.flip buffer)
    (let [out (byte-array (.remaining buffer))] (.get buffer out) out)))

(defn header [length checksum kind]
  (.array (doto (ByteBuffer/allocate 28)
            (.putLong 0 length) (.putInt 8 checksum) (.putShort 12 (short kind)))))

(defn block [kind data]
  (let [length (+ 28 (count data))
        crc (doto (CRC32.) (.update data) (.update (header length 0 kind)))]
    (byte-array (concat (header length (unchecked-int (.getValue crc)) kind) data))))

(defn file [name blocks root]
  (with-open [out (FileOutputStream. (str folder "/" name))]
    (let [places (reductions + 18 (map (comp count second) blocks))
          known (mapcat (fn [[id _] at] [:int id :long at]) blocks places)
          index (block 1 (apply numbers :int root known))]
      (.write out (byte-array (concat (.getBytes "JEPSEN") (numbers :int 1 :long (last places)))))
      (doseq [[_ one] blocks] (.write out one))
      (.write out index))))

(def odd
  [:conflict "a \"text\" \\ with\nlines" 1.5 1/3 12345678901234567890N 1.5M #"re+" \c
   (java.util.UUID/fromString "123e4567-e89b-12d3-a456-426614174000")
   (java.time.Instant/parse "2026-01-02T03:04:05Z") (java.util.Date. 1700000000123) 'sym/bol
   (->Other 1 2.0) true false nil 0.0 1.0 (float 2.5) (byte-array [1 2]) (vec (range 20))
   (range 3) (first {:k 1}) (apply str (repeat 70000 "z")) (byte-array 70000)])
(def name-of-list "l\u00e9x\ud83d\ude00")
(def large
  [9223372036854775807 -9223372036854775808 -300 100000 -100000 -5000000000 281474976710656])
(def ops
  [(assoc (->Op 0 3291485317 :invoke 0 :txn [[:w 2 1] [:r :x nil]]) :final? true)
   (->Op 1 3291485400 :invoke 1 :txn [[:append name-of-list -70000] [:r 7 nil]])
   (->Op 2 3296209422 :info :nemesis :start [:isolated {"n1" #{"n2" "n3"}}])
   (assoc (->Op 3 3297000000 :ok 1 :txn [[:append name-of-list -70000] [:r 7 300]]) :error odd)
   (->Op 4 3298000000 :ok 0 :txn [[:w 2 1] [:r :x 5000000000]])
   (->Op 5 3299000000 :invoke 2 :txn [[:w :x 5000000000] [:w 7 300] [:r name-of-list nil]])
   (->Op 6 3300000000 :ok 2 :txn [[:w :x 5000000000] [:w 7 300] [:r name-of-list [-70000]]])
   (->Op 7 1099511627776 :invoke 0 :txn (mapv (fn [v] [:w :big v]) large))])

; As a run writes it: the history in chunks, and a test that refers to it.
(def of-the-test
  {:name "a test" :start-time (java.util.Date. 0) :nodes ["n1" "n2"] :concurrency 5
   :history (->BlockRef (int 1)) :results (->BlockRef (int 5))})
(file "test.jepsen"
      [[2 (block 4 (apply bytes-of (take 3 ops)))]
       [3 (block 4 (apply bytes-of (drop 3 ops)))]
       [1 (block 5 (numbers :long 8 :long 0 :int 2 :long 3 :int 3))]
       [5 (block 2 (bytes-of {:valid? true}))]
       [4 (block 3 (byte-array (concat (numbers :int 0) (bytes-of of-the-test))))]]
      4)
; As older ones did: a vector of maps.
(file "old.jepsen"
      [[1 (block 2 (bytes-of (mapv #(into {} %) ops)))]
       [4 (block 2 (bytes-of {:name "old" :history (->BlockRef (int 1))}))]]
      4)
(with-open [out (io/writer (str folder "/history.edn"))]
  (doseq [op ops] (.write out (str (pr-str (into {} op)) "\n"))))
